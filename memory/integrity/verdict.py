"""One answer about a run out of three: its chain, its seals, and the tenant's log of seals."""

from dataclasses import replace

from memory.integrity.sealed_log import SealedLog
from memory.integrity.sealed_run import RunSeals
from memory.integrity.states import ChainReport, FirstBad, State, state_of


def verdict(
    chain: ChainReport, seals: RunSeals, seal_bad: FirstBad | None, log: SealedLog
) -> ChainReport:
    """The chain's report with what seals, checkpoints and anchors add.

    Of two bad places in the run the lower one is named, the chain's where they are one. A bad log of
    seals vouches for nothing; it is named when the run itself shows nothing.
    """
    bad = chain.first_bad
    if seal_bad is not None and (bad is None or seal_bad.sequence < bad.sequence):
        bad = seal_bad
    if bad is None:
        bad = log.first_bad
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
