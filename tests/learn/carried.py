"""A small set of our own, for where no other is at hand: tasks of a shop and of those who run it.

Each form is stored with three things filled in and asked for in other words with three others. The
forms come in neighbouring pairs, so that the right one is not found by its subject alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """One kind of task. ``{}`` is where the thing goes."""

    stored: str
    wordings: tuple[str, str, str]
    known: tuple[str, str, str]
    others: tuple[str, str, str]


_PRODUCTS = (("blue kayak", "desk lamp", "rain jacket"), ("tent", "coffee grinder", "road bike"))
_ORDERS = (("4411", "7302", "9058"), ("1276", "6640", "8391"))
_PEOPLE = (("Ana Ruiz", "Jonas Weber", "Mei Tanaka"), ("Omar Haddad", "Lena Novak", "Sam Okoro"))
_SERVICES = (("billing", "search", "checkout"), ("login", "shipping", "catalogue"))
_MONTHS = (("January", "March", "May"), ("July", "October", "December"))
_TABLES = (("orders", "customers", "invoices"), ("returns", "coupons", "sessions"))

FORMS = (
    Form(
        "Find the cheapest {} in the shop",
        (
            "Which {} costs the least in the shop?",
            "Show me the {} with the lowest price",
            "I want the cheapest {} there is",
        ),
        *_PRODUCTS,
    ),
    Form(
        "Find the best rated {} in the shop",
        (
            "Which {} do customers like the most in the shop?",
            "Show me the {} with the best reviews",
            "I want the {} that has most stars",
        ),
        *_PRODUCTS,
    ),
    Form(
        "Put a {} into the cart and check out",
        ("Buy a {} for me", "Order one {} in the shop", "Purchase a {} with the saved card"),
        *_PRODUCTS,
    ),
    Form(
        "Put a {} on the wish list",
        ("Remember a {} for later", "Add a {} to my wishes", "Save a {} to the wish list"),
        *_PRODUCTS,
    ),
    Form(
        "Cancel order {} and refund the customer",
        (
            "Order {} is not wanted any more, give the money back",
            "Stop order {} and pay the customer back",
            "Please cancel order {}, with a refund",
        ),
        *_ORDERS,
    ),
    Form(
        "Change the delivery address of order {}",
        (
            "Order {} has to go to another address",
            "Send order {} to a new place instead",
            "Correct where order {} is delivered to",
        ),
        *_ORDERS,
    ),
    Form(
        "Tell where order {} is now",
        (
            "When will order {} arrive?",
            "Track the parcel of order {}",
            "What is the delivery status of order {}?",
        ),
        *_ORDERS,
    ),
    Form(
        "Exchange the item of order {} for another size",
        (
            "The item of order {} does not fit, swap it for another size",
            "Replace what came with order {} by a larger one",
            "Order {} was too small, send the next size",
        ),
        *_ORDERS,
    ),
    Form(
        "Write an e-mail of thanks to {}",
        (
            "Thank {} by mail",
            "Send {} a mail that says thank you",
            "Let {} know by e-mail how grateful we are",
        ),
        *_PEOPLE,
    ),
    Form(
        "Write an e-mail of apology to {}",
        (
            "Say sorry to {} by mail",
            "Send {} a mail that says we are sorry",
            "Let {} know by e-mail that we apologise",
        ),
        *_PEOPLE,
    ),
    Form(
        "Give {} the role of an administrator",
        (
            "Make {} an administrator",
            "{} needs administrator rights",
            "Let {} administer the shop",
        ),
        *_PEOPLE,
    ),
    Form(
        "Reset the password of {}",
        (
            "{} forgot the password, set a new one",
            "Let {} choose a new password",
            "Help {} to get into the account again",
        ),
        *_PEOPLE,
    ),
    Form(
        "Restart the {} service",
        (
            "The {} service hangs, start it anew",
            "Stop and start the {} service",
            "Bring the {} service up again",
        ),
        *_SERVICES,
    ),
    Form(
        "Roll the {} service back to the release before",
        (
            "The new release of the {} service is broken, go back",
            "Undo the last deployment of the {} service",
            "Put the previous version of the {} service live",
        ),
        *_SERVICES,
    ),
    Form(
        "Give the {} service more memory",
        (
            "The {} service runs out of memory, raise the limit",
            "Raise the memory limit of the {} service",
            "Let the {} service use more RAM",
        ),
        *_SERVICES,
    ),
    Form(
        "Find the slowest request of the {} service",
        (
            "Which request to the {} service takes longest?",
            "Show what makes the {} service slow",
            "Where does the {} service lose its time?",
        ),
        *_SERVICES,
    ),
    Form(
        "Make a report of the sales in {}",
        (
            "How much did we sell in {}?",
            "Sum up the sales of {}",
            "Report what was sold during {}",
        ),
        *_MONTHS,
    ),
    Form(
        "Make a report of the refunds in {}",
        (
            "How much did we pay back in {}?",
            "Sum up the refunds of {}",
            "Report what was refunded during {}",
        ),
        *_MONTHS,
    ),
    Form(
        "Back up the {} table",
        (
            "Make a copy of the {} table in case it is lost",
            "Save the {} table elsewhere",
            "Dump the {} table to a file",
        ),
        *_TABLES,
    ),
    Form(
        "Add an index to the {} table",
        (
            "Queries on the {} table are slow, index it",
            "Create an index for the {} table",
            "Make look-ups in the {} table faster",
        ),
        *_TABLES,
    ),
)
