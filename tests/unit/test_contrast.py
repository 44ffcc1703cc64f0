"""How two texts differ in what they say is to be done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.lexical.contrast import contrast, may_mean_the_same

WORDS = [
    "enable",
    "disable",
    "not",
    "never",
    "without",
    "turn",
    "on",
    "off",
    "the",
    "backup",
    "login",
    "from",
    "to",
    "Paris",
    "Rome",
    '"x"',
    "12",
    ",",
    ".",
    "{name}",
    "add",
    "remove",
    "don't",
    "un-do",
    "read-only",
    "read-write",
    "is_enabled",
    "dis\u00adable",
    "log",
    "in",
    "out",
    "retry",
    "requests",
]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=60)


OPPOSED = """
    Enable dark mode | Disable dark mode
    Adding a user to the team | Removing a user from the team
    Increase the memory limit | Decrease the memory limit
    Turn on the alarm | Turn off the alarm
    Log in to the shop | Log out of the shop
    Upload the report | Download the report
    Uninstalled the package | Install the package
    Import the orders | Export the orders
    Encoding a file | Decoding a file
    Mount the volume | Unmount the volume
    Subscribe to the list | Unsubscribe from the list
    Upgrade the database | Downgrade the database
    Start the worker | Stop the worker
    Accept the request | Reject the request
    Lock the account | Unlock the account
    Open the valve | Close the valve
    Scale up the cluster | Scale down the cluster
    Push the image | Pull the image
    Encrypt the backup | Decrypt the backup
    Show the side bar | Hide the side bar
    Allow the address | Deny the address
    Sort the rows in ascending order | Sort the rows in descending order
    Find the cheapest flight | Find the most expensive flight
    Make the repository public | Make the repository private
    Restart the service | Do not restart the service
    Install it with dependencies | Install it without dependencies
    Find valid entries | Find invalid entries
    Connect the sensor | Disconnect the sensor
    Include the tests | Exclude the tests
    Minimize the cost | Maximize the cost
    Turn on debug logging | Turn debug logging off
    Turn the lights of the rooms on this floor on | Turn the lights of the rooms on this floor off
    Turn debug logs of all web hosts on in staging | Turn debug logs of all web hosts off in staging
    Switching the old flag of the page off | Switch the old flag of the page on
    Log in to the portal | Log out of the portal
    Scale the web deployment up | Scale down the web deployment
    Retry requests that time out | Do not retry requests that time out
    Show reviewed pull requests | Show pull requests I haven't reviewed
    Deploy with downtime | Deploy without downtime
    Copy the files from laptop to server | Copy the files from server to laptop
    Move the data from A1 to B2 | Move the data from B2 into A1
    Convert Celsius to Fahrenheit | Convert Fahrenheit to Celsius
    Replace tabs by spaces | Replace spaces by tabs
    Run `systemctl enable nginx` on web1 | Run `systemctl disable nginx` on web1
    Press the "Accept" button | Press the "Reject" button
    Set the flag to 'true' | Set the flag to 'false'
    Mount the file system read-only | Mount the file system read-write
    Mount it readonly | Mount it read\u2011write
    Add an opt-in for tracking | Add an opt-out for tracking
    Fix the log-in page | Fix the log-out page
    Test the sign-in flow | Test the sign out flow
    Run the scale-up job | Run the scale-down job
    Upload files synchronously | Upload files a-synchronously
    De-activate the account | Activate the account
    Return the non-empty lines | Return the empty lines
    Write the pre-deploy hook | Write the post-deploy hook
    Call enableCache at startup | Call disableCache at startup
    Set is_enabled | Set is_disabled
    \uff25\uff4eable the cache | \uff24\uff49\uff53able the cache
    En\u00adable the cache | Dis\u00adable the cache
    En\u200bable the cache | Dis\u200bable the cache
    En\u2060able the cache | Dis\ufeffable the cache
    Fade in the picture | Fade out the picture
    Turn the list into a table and log in | Turn the list into a table and log out
    Check in at the hotel | Check out at the hotel
    Run the hook before the deployment | Run the hook after the deployment
    Import the rows from Excel | Import the rows to Excel
    Opt all of the new users in | Opt all of the new users out
"""

NOT_OPPOSED = """
    Book a room in Paris | Book a room in Rome
    Configure the retries of the client | Configure the timeouts of the client
    Sign the document | Design the document
    Install numpy | Install pandas
    Install numpy | Installing numpy
    Play the video | Display the video
    Set the default | Set the fault
    Fill in the form | Inform the customer of it
    Start the server | Restart the server
    Find bugs in the code of the parser today | Find out why nothing is printed there yet
    Enable logging and disable tracing | Disable tracing and enable logging
    Remove the user | Delete the user
    Sign in as admin | Log in as admin
    Deliver the parcel | Send the parcel
    Hide the sidebar | Don't show the sidebar
    Turn off 2FA | Disable 2FA
    Turn the 2FA login of all the users off | Disable the 2FA login of all the users
    Turn off \uff12FA | Disable 2FA
    Stop a job that does not start | Stop a job that cannot start
    Add, remove and list users | Remove a user
    Debug the payment environment | Test the payment environment
    Speed up the slow query | Make the query faster
    Fill in the form | Fill out the form
    Log the errors of the worker in a file | Log the errors of the worker to a file and rotate it
    Make the volume read-only | Make the volume readonly
    Opt-in to the beta | Opt in to the beta
    Up-/downgrade the database | Upgrade the database
    Plot in- and outbound traffic | Plot inbound traffic
    Add an enable/disable switch | Add a switch to disable it
    Dis\u00adable the cache | Disable the cache
    Dis\u200bable the cache | \uff24isable the cache
"""


def _pairs(text: str) -> list[list[str]]:
    return [line.split(" | ") for line in map(str.strip, text.strip().splitlines())]


@pytest.mark.parametrize(("one", "other"), _pairs(OPPOSED))
def test_opposites_contradict_each_other(one, other):
    assert contrast(one, other).opposed
    assert contrast(other, one).opposed
    assert contrast(one.lower(), other.upper()).opposed
    assert not contrast(one, one).opposed


@pytest.mark.parametrize(("one", "other"), _pairs(NOT_OPPOSED))
def test_two_ways_to_say_it_and_other_tasks_do_not(one, other):
    assert not contrast(one, other).opposed
    assert not contrast(other, one).opposed


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ("Book a room in Paris", "Book a room in Rome", 1.0),
        ("Cancel order 4711", "Cancel the orders 17 and 18", 1.0),
        ('Post "hello" to the forum', "Post {text} to the forum", 1.0),
        ("Cancel an order", "Return an order", 0.5),
        ("", "", 0.0),
        ("Отменить заказ", "Отменить заказы", 1.0),
    ],
)
def test_values_do_not_count_as_words(one, other, likeness):
    assert contrast(one, other).likeness == likeness


@given(texts, texts)
def test_it_is_the_same_both_ways_round(one, other):
    assert contrast(one, other) == contrast(other, one)
    assert not contrast(one, one).opposed
    assert 0.0 <= contrast(one, other).likeness <= 1.0


def test_long_texts_are_compared_where_they_differ():
    before = "As agreed in the meeting " + "of the whole team " * 200
    enable, disable = (f"{before}{verb} the cache" for verb in ("enable", "disable"))
    assert contrast(enable, disable).opposed
    assert not contrast(enable, enable).opposed
    assert not contrast(enable, before + "enable the proxy").opposed


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("Login to Facebook", "Sign into FB", True),
        ("Reset the user's password", "Restore the user's password", True),
        ("Open page 3", "Open page 4", False),
        ("From 3 to 4", "From 4 to 3", False),
        ("Fly from Paris to Rome", "Fly from Rome to Paris", False),
        ("Upgrade to 2.1", "Upgrade to 2.1.", True),
        ("Run `a b`", "Run `a c`", False),
        ("See https://a.io/x", "Look at https://a.io/y", False),
        ("Edit src/a.py", "Edit src/b.py", False),
        ("", "", True),
        ("Set the retries to \uff13", "Set retries to 3", True),
        ("Scale up the cluster", "Scale down the cluster", False),
    ],
)
def test_what_may_be_two_wordings_of_one_thing(one, other, may):
    assert may_mean_the_same(one, other) is may
    assert may_mean_the_same(other, one) is may


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("Sort the table by date", "Filter the table by date", True),
        ("Sort the table by date", "Sort the table", False),
        ("Book a room in Paris", "Book rooms in Rome", False),
    ],
)
def test_whether_each_has_a_word_of_its_own(one, other, differ):
    assert contrast(one, other).differ is differ
    assert contrast(other, one).differ is differ
