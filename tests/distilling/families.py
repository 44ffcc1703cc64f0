"""Tasks by template, and tasks that look like one template and are none.

Of each set a half was looked at while the rules were made (``dev``), the other half was written at
the same time, and only measured (``held``).
"""

from __future__ import annotations

from typing import Final

Sets = dict[str, list[list[str]]]


def _sets(text: str) -> list[list[str]]:
    """Blocks of lines; blank lines stand between them."""
    return [
        [line.strip() for line in block.splitlines() if line.strip()]
        for block in text.strip().split("\n\n")
    ]


FAMILIES: Final[Sets] = {
    "dev": _sets("""
        Book a hotel room in Paris
        Book a hotel room in Rome
        Book a hotel room in Oslo

        Configure retries of the HTTP client
        Configure timeouts of the HTTP client
        Configure backoff of the HTTP client

        Write unit tests for the parser
        Write unit tests for the tokenizer
        Write unit tests for the scheduler
        Write unit tests for the payment gateway

        Send an email to Anna about the budget
        Send an email to Peter about the offsite
        Send an email to Maria about the contract

        Deploy the billing service to staging
        Deploy the search service to production
        Deploy the auth service to staging

        Fix the flaky login test
        Fix the flaky checkout test
        Fix the flaky upload test

        Add a column email to the table users
        Add a column price to the table products
        Add a column due_date to the table invoices

        Convert report.docx to PDF
        Convert slides.pptx to PDF
        Convert thesis.odt to PDF

        Translate the landing page into German
        Translate the landing page into Japanese
        Translate the landing page into Brazilian Portuguese

        Rename the variable x to index
        Rename the variable tmp to buffer
        Rename the variable s to session_name

        Summarize the meeting of March 3
        Summarize the meeting of April 17
        Summarize the meeting of May 9

        Upgrade numpy to version 2.1
        Upgrade django to version 5.0
        Upgrade react to version 19

        Create a dashboard for CPU usage
        Create a dashboard for error rates
        Create a dashboard for monthly revenue

        How do I parse JSON in Rust?
        How do I parse YAML in Go?
        How do I parse CSV in Kotlin?

        Schedule a call with the design team on Monday
        Schedule a call with the legal team on Thursday
        Schedule a call with the sales team on Friday
    """),
    "held": _sets("""
        Reserve a table at Luigi's for four people
        Reserve a table at Nobu for two people
        Reserve a table at The Ivy for six people

        Set up monitoring for Postgres
        Set up monitoring for Redis
        Set up monitoring for the message queue

        Find the weather in Lisbon tomorrow
        Find the weather in Cairo tomorrow
        Find the weather in Buenos Aires tomorrow

        Refactor the class OrderService into smaller classes
        Refactor the class InvoiceMapper into smaller classes
        Refactor the class UserController into smaller classes

        Order a pair of running shoes in size 42
        Order a pair of hiking boots in size 44
        Order a pair of sandals in size 38

        Restore the database orders from last night's backup
        Restore the database customers from last night's backup
        Restore the database inventory from last night's backup

        Draft a reply to the complaint of Mr. Jones
        Draft a reply to the complaint of Mrs. Keller
        Draft a reply to the complaint of Dr. Okafor

        Implement quicksort in C++
        Implement binary search in Haskell
        Implement a trie in Swift

        Check whether port 8080 is free on web-01
        Check whether port 5432 is free on db-02
        Check whether port 6379 is free on cache-01

        Plot temperature over time
        Plot humidity over time
        Plot air pressure over time

        Investigate the memory leak in the image resizer
        Investigate the memory leak in the websocket handler
        Investigate the memory leak in the report generator

        Please update the copyright year in LICENSE
        Please update the copyright year in footer.html
        Please update the copyright year in about.md

        Transfer 200 euros to my savings account
        Transfer 75 euros to my joint account
        Transfer 1,500 euros to my business account

        Document the endpoint GET /users
        Document the endpoint POST /orders
        Document the endpoint DELETE /sessions/{id}

        Generate a weekly report on customer churn
        Generate a weekly report on open tickets
        Generate a weekly report on server costs
    """),
}
"""Each set is of one template: at least three of its tasks should be in one group."""

DIFFERENT: Final[Sets] = {
    "dev": _sets("""
        Enable dark mode
        Disable dark mode

        Add a user to the project
        Remove a user from the project
        Rename a user of the project

        Increase the limit of the queue
        Decrease the limit of the queue

        Turn on notifications for the channel
        Turn off notifications for the channel

        Create a branch in git
        Delete a branch in git
        Rename a branch in git

        Log in to the admin panel
        Log out of the admin panel

        Encrypt the backup with the master key
        Decrypt the backup with the master key

        Import customers from a CSV file
        Export customers to a CSV file

        Start the worker process
        Stop the worker process
        Restart the worker process

        Sort the list in ascending order
        Sort the list in descending order

        Write a poem about the sea
        Write a Dockerfile for the API
        Write a letter to the landlord

        How do I mount a volume in Docker?
        How do I unmount a volume in Docker?
        How do I back up a volume in Docker?

        Run the migrations with downtime
        Run the migrations without downtime

        Allow access to the bucket from the office network
        Block access to the bucket from the office network

        Fix the login page
        Design the login page
        Translate the login page
    """),
    "held": _sets("""
        Subscribe to the newsletter
        Unsubscribe from the newsletter

        Lock the account of a customer
        Unlock the account of a customer

        Scale up the web servers
        Scale down the web servers

        Approve the pull request
        Reject the pull request
        Review the pull request

        Install the package globally
        Uninstall the package globally
        Update the package globally

        Please show the side bar in the editor
        Please hide the side bar in the editor

        Compress the log files of last week
        Decompress the log files of last week

        Accept the invitation to the conference
        Decline the invitation to the conference

        Check in for the flight to Madrid
        Cancel the flight to Madrid
        Book the flight to Madrid

        Make the repository public
        Make the repository private

        I want to buy 10 shares of ACME
        I want to sell 10 shares of ACME

        Make a cake for the party
        Make a budget for the department
        Make a mock for the database

        Push the image to the registry
        Pull the image from the registry
        Scan the image in the registry

        Raise the price of the premium plan
        Lower the price of the premium plan

        Retry the request after a failure
        Do not retry the request after a failure
    """),
}
"""No two tasks of a set may be in one group."""
