"""Graded words and phrases of praise and complaint in English, German and Spanish.

Grades lie in [-1, 1]: 1 for what is said of the best work, about .5 for plain approval and thanks.
Chosen by us. Only words that judge are here: ``error`` and ``problem`` name what tasks are about,
so they count little. Apostrophes are left out of words, accents are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split())


_POSITIVE: Final[Mapping[float, str]] = {
    1.0: (
        "perfect perfectly excellent amazing awesome brilliant fantastic outstanding flawless "
        "flawlessly superb wonderful perfekt hervorragend ausgezeichnet großartig grossartig "
        "fantastisch brillant perfecto perfecta excelente increíble fantástico fantástica "
        "brillante maravilloso estupendo estupenda genial 💯 🎉 🏆 🤩"
    ),
    0.8: (
        "solved fixed gelöst behoben resuelto resuelta solucionado great love loved impressive "
        "impressed exactly delighted terrific super klasse spitze toll prima genau begeistert "
        "wunderbar encanta encantó exactamente justo impresionante ❤ ❤️ 😍 🥳 🚀"
    ),
    0.6: (
        "good well nice nicely helpful useful correct correctly right clean cleaner clear clearly "
        "better best happy glad pleased smooth smoothly elegant accurate succeeded success "
        "successful successfully liked cool neat bravo kudos enjoy enjoyed reliable saved gut "
        "gute guter gutes guten schön schöne hilfreich nützlich korrekt richtig zufrieden sauber "
        "besser verständlich übersichtlich elegant gefällt passt stimmt bien bueno buena buenos "
        "buenas útil correcto correcta mejor claro clara limpio gusta gustó contento contenta 👍 "
        "👏 🙌 ✅ 😀 😃 😊 🙂 👌 💪"
    ),
    0.45: (
        "works worked working funktioniert funktionierte läuft klappt geklappt funciona funcionó "
        "funcionando passes pass passing like helped fast quick thanks thank thx danke gracias "
        "appreciate appreciated 🙏"
    ),
    0.2: ("fine okay finally interesting endlich"),
}

_NEGATIVE: Final[Mapping[float, str]] = {
    -1.0: (
        "terrible awful horrible useless worst garbage unacceptable disaster rubbish crap "
        "furchtbar schrecklich katastrophe nutzlos unbrauchbar miserabel desastre pésimo pésima "
        "horrible inútil inaceptable fatal 😡 🤬 🤮"
    ),
    -0.8: (
        "wrong wrongly incorrect broken broke hate hated disappointing disappointed failed fail "
        "fails failing annoying annoyed frustrating frustrated crashed crash crashes falsch "
        "falsche falschen falscher falsches kaputt enttäuscht enttäuschend ärgerlich fehlerhaft "
        "gescheitert mal incorrecto incorrecta roto rota equivocado equivocada decepcionante "
        "frustrante falla falló 👎 😠 ❌ 💩"
    ),
    -0.6: (
        "bad badly poor poorly worse confusing confused slow slower unhelpful misunderstood "
        "misleading ignored forgot forgotten missed messy ugly unclear unusable incomplete "
        "inaccurate buggy overcomplicated complicated mistake mistakes unnecessary nonsense "
        "hallucinated invented revert reverted nope schlecht schlechte schlechter langsam "
        "unübersichtlich verwirrend vergessen unvollständig umständlich unklar ignoriert leider "
        "lento lenta confuso confusa peor malo mala olvidaste borraste ignoraste incompleto "
        "incompleta 😞 😕 🙁 ☹ 😢 😤"
    ),
    -0.25: (
        "error errors bug bugs fehler problema problemas problem problems issue issues sorry hard"
    ),
}

_PHRASES: Final[Mapping[float, tuple[str, ...]]] = {
    1.0: ("like a charm", "ship it", "right on the spot", "could not be better"),
    0.8: (
        "well done",
        "good job",
        "great job",
        "nice job",
        "good work",
        "great work",
        "keep it up",
        "keep doing",
        "good catch",
        "just right",
        "what i needed",
        "what i wanted",
        "the one i wanted",
        "gut gemacht",
        "weiter so",
        "muchas gracias",
        "vielen dank",
        "buen trabajo",
        "lo que necesitaba",
        "ahora sí",
        "so wollte ich",
        "saved me",
        "turned out great",
        "made my day",
    ),
    0.6: (
        "not bad",
        "nicht schlecht",
        "no está mal",
        "no complaints",
        "no problems",
        "no issues",
        "no errors",
        "without problems",
        "without any problems",
        "without issues",
        "without any issues",
        "without errors",
        "keine fehler",
        "keine probleme",
        "ohne probleme",
        "ohne fehler",
        "sin problemas",
        "sin errores",
        "thank you",
    ),
    -0.8: (
        "waste of time",
        "made up",
        "not what i asked",
        "isnt what i asked",
        "not what i wanted",
        "do it myself",
        "did it myself",
        "made things worse",
        "made it worse",
        "no good",
        "zeitverschwendung",
        "pérdida de tiempo",
        "no sirve",
        "no me sirve",
        "sin funcionar",
        "same error",
        "same mistake",
        "same problem",
        "mismo error",
        "schon wieder",
        "stimmt nicht",
        "stimmen nicht",
        "full of errors",
        "full of bugs",
        "not work",
        "doesnt work",
        "didnt work",
        "not working",
        "never worked",
        "funktioniert nicht",
        "klappt nicht",
        "geht nicht",
        "no funciona",
        "no funcionó",
        "not help",
        "didnt help",
        "doesnt help",
        "not compile",
        "doesnt compile",
        "wont compile",
        "not run",
        "doesnt run",
        "wont run",
        "not build",
        "doesnt build",
        "wont start",
        "doesnt start",
    ),
    -0.6: (
        "do better",
        "try again",
        "start over",
        "dont do that",
        "do not do that",
        "never do that",
        "stop doing",
        "please stop",
        "immer noch nicht",
        "noch immer nicht",
        "too long",
        "too slow",
        "too many",
        "too much",
        "too complicated",
        "zu lang",
        "zu langsam",
        "zu viel",
        "demasiado largo",
        "demasiado lento",
    ),
    0.0: (
        "would be great",
        "would be nice",
        "would be good",
        "would be better",
        "would be helpful",
        "would be useful",
        "wäre gut",
        "wäre schön",
        "wäre super",
        "wäre toll",
        "wäre besser",
        "estaría bien",
        "sería genial",
        "sería bueno",
        "would like",
        "id like",
        "looks like",
        "good morning",
        "guten morgen",
        "guten tag",
        "buenos días",
        "bad request",
        "error handling",
        "error message",
        "as well",
        "right now",
        "best practice",
        "best practices",
    ),
}

NEGATIONS: Final = _words(
    "not no never none nothing without cannot cant dont doesnt didnt isnt arent wasnt werent "
    "wont wouldnt couldnt shouldnt havent hasnt hadnt aint hardly barely neither nor nicht "
    "nie niemals kein keine keinen keiner nichts ohne kaum nunca jamás sin nada tampoco "
    "ningún ninguna ni"
)
"""Words that turn round what follows them in their clause; German ones also what goes before."""

NEGATIONS_AFTER: Final = frozenset({"nicht", "nie"})

STRENGTHS: Final[Mapping[str, float]] = {
    **dict.fromkeys(
        _words(
            "very really so extremely absolutely totally completely much incredibly highly always "
            "sehr wirklich absolut total extrem viel muy realmente totalmente mucho tan"
        ),
        1.3,
    ),
    **dict.fromkeys(
        _words(
            "slightly somewhat rather fairly partly partially mostly bit little kinda etwas "
            "ziemlich teilweise bisschen algo poco bastante parcialmente"
        ),
        0.6,
    ),
}
"""What a word makes of the judging word right after it."""

EXCESS: Final = frozenset({"too", "overly", "zu", "demasiado", "demasiada"})
"""Words that make a fault of the word after them."""

CONTRASTS: Final = _words(
    "but however though although yet aber jedoch allerdings sondern pero sino aunque"
)
"""Words after which the clause comes that counts."""

OPEN: Final = _words(
    "if when whether unless can could would should will may might wish hope please let kannst "
    "könntest könnte würde wenn falls ob bitte si puedes podrías podría ojalá cuando"
)
"""Words that make a clause a wish, a request or a condition: what follows them judges little."""


def _graded() -> dict[tuple[str, ...], float]:
    grades: dict[tuple[str, ...], float] = {}
    for told in (_POSITIVE, _NEGATIVE):
        for grade, words in told.items():
            grades.update({(word,): grade for word in words.casefold().split()})
    for grade, phrases in _PHRASES.items():
        grades.update({tuple(phrase.casefold().split()): grade for phrase in phrases})
    return grades


GRADES: Final[Mapping[tuple[str, ...], float]] = _graded()
"""Grade by the words of a phrase, a single word being a phrase of one. 0: says nothing."""
LONGEST: Final = max(map(len, GRADES))
