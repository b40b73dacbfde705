"""A stand-in for Slack on this machine: a page to press buttons in, and the tests' double."""

from dibs.playground.bot import Answer
from dibs.playground.clock import Clock
from dibs.playground.files import File
from dibs.playground.interactions import Result
from dibs.playground.standin import SlackStandIn
from dibs.playground.tour import Lever, Step, Where
from dibs.playground.world import Call, Channel, Failure, Person

__all__ = [
    "Answer",
    "Call",
    "Channel",
    "Clock",
    "Failure",
    "File",
    "Lever",
    "Person",
    "Result",
    "SlackStandIn",
    "Step",
    "Where",
]
