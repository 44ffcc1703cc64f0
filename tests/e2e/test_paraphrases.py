"""Short tasks asked for in other words: a word in common by chance must not lead."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lot_grpc.domain.fusion import FusionWeights
from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from tests.fusion.__main__ import searched_sets
from tests.fusion.conversations import conversations

PARAPHRASES: dict[str, list[str]] = {
    "Add pagination to the list of orders": ["show purchases twenty at a time"],
    "Fix the memory leak in the image resizer": [
        "the thumbnail service keeps growing in RAM until it dies"
    ],
    "Write unit tests for the date parser": ["cover the code that reads timestamps with checks"],
    "Upgrade the project to Python 3.12": ["move to a newer interpreter version"],
    "Cache responses of the weather API": [
        "don't ask for the forecast again every time",
        "cache what the forecast service answers",
    ],
    "Rename the column user_name to login": [
        "call the field that holds the account name differently"
    ],
    "Send a welcome mail after registration": [
        "greet people by email once they sign up",
        "mail to a new user after they sign up",
    ],
    "Deploy the web service to Kubernetes": ["put the new backend live on the cluster"],
    "Roll back the last release": ["go back to the version before", "undo the release of today"],
    "Add dark mode to the settings page": ["let people choose a black theme"],
    "Limit requests per client": [
        "throttle callers that hit us too often",
        "requests of one client must not exceed a rate",
    ],
    "Encrypt backups before upload": ["make sure dumps are unreadable when they leave the server"],
    "Import customers from a CSV file": [
        "load client data out of a spreadsheet export",
        "read customers out of a spreadsheet",
    ],
    "Translate the checkout page into German": ["a German version of where people pay"],
    "Remove unused dependencies": ["throw out libraries nobody needs"],
    "Split the monolith into services": ["break the big application into smaller pieces"],
    "Speed up the search query on products": [
        "looking for products takes too long",
        "make finding products faster",
    ],
    "Retry failed payments": [
        "try again when a charge does not go through",
        "payments that failed should be attempted once more",
    ],
    "Validate the postal code in the address form": ["check that the zip somebody types is real"],
    "Export the report as PDF": ["let people download the numbers as a document"],
    "Delete accounts inactive for two years": [
        "purge users who have not logged in for ages",
        "remove users that have been idle",
    ],
    "Rotate the TLS certificates": ["replace the expiring https keys"],
    "Log slow database queries": ["find out which SQL statements take long"],
    "Show a progress bar while uploading": ["tell people how far their file transfer is"],
    "Debug the flaky login test": [
        "the sign-in check passes only sometimes",
        "login test fails now and then",
    ],
    "Book a hotel room in Paris": ["I need a place to stay in France's capital"],
    "Cancel the subscription of a customer": [
        "a client wants to stop paying every month",
        "a customer wants to end the contract",
    ],
    "Change the delivery address of an order": ["the parcel should go somewhere else"],
    "Compress images before they are stored": [
        "make pictures smaller on disk",
        "store images smaller",
    ],
    "Merge duplicate contacts": ["the same person is in the address book twice"],
    "Notify the team when a build breaks": [
        "post a message when compilation fails",
        "tell the team that the build is red",
    ],
    "Move the configuration into environment variables": ["no more hard-coded settings"],
    "Document the public endpoints": ["write down what the API offers"],
    "Set up continuous integration": ["run the tests on every push"],
    "Sort the table by price": [
        "cheapest first in the list",
        "table with the cheapest price on top",
    ],
    "Mask credit card numbers in logs": ["keep payment details out of our log files"],
    "Convert the temperature to Fahrenheit": [
        "degrees Celsius into the American unit",
        "temperature in American degrees",
    ],
    "Count the visitors of each page": ["how many people look at which part of the site"],
    "Restore the database from yesterday's dump": [
        "bring back the data we had a day ago",
        "get the database back as it was",
    ],
    "Draw a chart of monthly revenue": ["plot how much we earned each month"],
}


def test_a_short_request_in_other_words_is_found_by_what_it_means() -> None:
    tasks = tuple(Document(f"t{number}", task) for number, task in enumerate(PARAPHRASES))
    queries = tuple(
        EvalQuery(f"q{number}-{which}", text, {f"t{number}": 1.0})
        for number, others in enumerate(PARAPHRASES.values())
        for which, text in enumerate(others)
    )
    [found] = asyncio.run(searched_sets([Dataset("paraphrases", Path(), tasks, queries)]))
    assert found.gap(FusionWeights()) >= -0.01
    assert found.hybrid(FusionWeights()) >= 0.92


def test_a_question_about_a_conversation_is_answered_no_worse_than_by_the_better_leg() -> None:
    for half in (0, 1):
        [found] = asyncio.run(searched_sets([conversations(half)]))
        assert found.gap(FusionWeights()) >= -0.01
