"""One answer about a run out of three: its chain, its seals, and the tenant's log of seals."""

from collections.abc import Iterable
from dataclasses import replace

from memory.integrity.sealed_log import SealedLog, forged_leaf
from memory.integrity.sealed_run import RunSeals
from memory.integrity.states import ChainReport, FirstBad, State, state_of


def verdict(
    chain: ChainReport,
    seals: RunSeals,
    log: SealedLog,
    *,
    in_the_run: Iterable[FirstBad | None],
    of_its_head: FirstBad | None = None,
) -> ChainReport:
    """The chain's report with what seals, acts of governance, checkpoints and anchors add.

    Of several bad places in the run the lowest is named, the chain's where they are one. What is wrong with the head row alone,
    and a bad log of seals, which vouches for nothing, are named when the run itself shows nothing; so is a forged leaf about it.
    """
    bad = chain.first_bad
    for one in in_the_run:
        if one is not None and (bad is None or one.sequence < bad.sequence):
            bad = one
    bad = bad or log.first_bad or of_its_head
    if bad is None and log.forged is not None and log.forged.run_id == chain.run_id:
        bad = forged_leaf(log.forged)
    checkpoint = log.checkpoint.as_wire() if log.checkpoint is not None else None
    is_anchored = all(one.leaf_index < log.anchored for one in seals.seals)
    state = state_of(
        is_tampered=bad is not None,
        is_complete=chain.state is not State.NOT_COMPLETE,
        entries=chain.entries,
        linkage_only=chain.linkage_only,
        erased=chain.erased,
        unsealed=chain.unsealed,
        is_anchored=is_anchored,
    )
    return replace(chain, state=state, first_bad=bad, checkpoint=checkpoint)
