"""Opposites among the words of two tasks."""

from __future__ import annotations

import pytest

from lot_grpc.domain.opposites import opposed

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
"""


def _pairs(text: str) -> list[list[str]]:
    return [line.split(" | ") for line in map(str.strip, text.strip().splitlines())]


@pytest.mark.parametrize(("one", "other"), _pairs(OPPOSED))
def test_opposites_are_told_apart_either_way_round(one, other):
    assert opposed(one.split(), other.split())
    assert opposed(reversed(other.upper().split()), one.split())


@pytest.mark.parametrize(("one", "other"), _pairs(NOT_OPPOSED))
def test_other_words_are_no_opposites(one, other):
    assert not opposed(one.split(), other.split())
    assert not opposed(other.split(), one.split())
