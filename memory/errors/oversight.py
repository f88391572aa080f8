"""Refusals about what people watch over: reviews, quarantines, webhooks and their deliveries."""

from dataclasses import dataclass

from memory.errors.base import DomainError, NotFound


class ReviewNotFound(NotFound):
    code = "review-not-found"
    message = "Nothing of this kind and id waits for a decision. It may have been decided."


class QuarantineNotFound(NotFound):
    code = "quarantine-not-found"
    message = "There is no such quarantine."


class NothingToQuarantine(DomainError):
    code = "nothing-to-quarantine"
    message = "Nothing that is in use was written so. Look at the preview."


@dataclass(eq=False)
class QuarantineClosed(DomainError):
    """`status`: rolling-back, lifted or rolled-back."""

    code = "quarantine-closed"
    message = "This quarantine has ended, or is being rolled back."
    status: str


class WebhookNotFound(NotFound):
    code = "webhook-not-found"
    message = "There is no such webhook."


class DeliveryNotFound(NotFound):
    code = "delivery-not-found"
    message = "There is no such delivery of this webhook."


@dataclass(eq=False)
class WebhookDisabled(DomainError):
    """`because`: paused, gone or failing."""

    code = "webhook-disabled"
    message = "This webhook is disabled, so nothing is sent to it. Enable it first."
    because: str
