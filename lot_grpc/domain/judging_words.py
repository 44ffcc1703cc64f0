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
        "brillante maravilloso estupendo estupenda genial 💯 🎉 🏆 🤩 magnificent marvelous "
        "marvellous spectacular einwandfrei tadellos traumhaft magnífico magnífica fenomenal "
        "perfectamente impecable"
    ),
    0.8: (
        "solved fixed gelöst behoben resuelto resuelta solucionado great love loved "
        "impressive impressed delighted terrific super klasse spitze toll prima begeistert "
        "wunderbar encanta encantó impresionante ❤ ❤️ 😍 🥳 🚀 beautiful beautifully satisfied "
        "nailed resolved sweet yay hooray hurra precise insightful spitzenmäßig gelungen "
        "vorbildlich geholfen präzise bravo encantado satisfecho"
    ),
    0.6: (
        "good well nice nicely helpful useful correct correctly clean cleaner clear clearly "
        "better best happy glad pleased smooth smoothly elegant accurate succeeded success "
        "successful successfully liked cool neat bravo kudos enjoy enjoyed reliable saved gut "
        "gute guter gutes guten schön schöne hilfreich nützlich korrekt zufrieden sauber "
        "besser verständlich übersichtlich gefällt passt stimmt bien bueno buena buenos "
        "buenas útil correcto correcta mejor claro clara limpio gusta gustó contento contenta "
        "👍 👏 🙌 ✅ 😀 😃 😊 🙂 👌 💪 thorough concise readable valuable intuitive stable robust "
        "improved improvement lgtm tidy polished sensible smart clever treffend passend "
        "erledigt freut freue bonito acertado preciso ayudó sirvió agradezco approved"
    ),
    0.45: (
        "works worked working funktioniert funktionierte klappt geklappt funciona funcionó "
        "funcionando passes pass passing helped thanks thank thx danke gracias appreciate "
        "appreciated 🙏 cheers lovely exactly genau exactamente justo richtig top"
    ),
    0.2: ("fine okay finally interesting endlich fast quick faster easier rápido rápida"),
}

_NEGATIVE: Final[Mapping[float, str]] = {
    -1.0: (
        "terrible awful horrible useless worst garbage unacceptable disaster rubbish crap "
        "furchtbar schrecklich katastrophe nutzlos unbrauchbar miserabel desastre pésimo "
        "pésima inútil inaceptable 😡 🤬 🤮 pathetic ridiculous basura mist unsinn quatsch"
    ),
    -0.8: (
        "wrong wrongly incorrect broken broke hate hated disappointing disappointed failed "
        "fail fails failing annoying annoyed frustrating frustrated crashed crash crashes "
        "falsch falsche falschen falscher falsches kaputt enttäuscht enttäuschend ärgerlich "
        "fehlerhaft gescheitert incorrecto incorrecta roto rota equivocado equivocada "
        "decepcionante frustrante falla falló 👎 😠 ❌ 💩 corrupted unusable unhappy dissatisfied "
        "unsatisfied stupid dumb untrue sloppy careless unbearable fehlgeschlagen abgestürzt "
        "mangelhaft nervt schlimmer fallando insatisfecho peores"
    ),
    -0.6: (
        "bad badly poor poorly worse confusing confused slow slower unhelpful misunderstood "
        "misleading ignored forgot forgotten missed messy ugly unclear unusable incomplete "
        "inaccurate buggy overcomplicated complicated mistake mistakes unnecessary nonsense "
        "hallucinated invented revert reverted nope schlecht schlechte schlechter langsam "
        "unübersichtlich verwirrend vergessen unvollständig umständlich unklar ignoriert "
        "leider lento lenta confuso confusa peor malo mala olvidaste borraste ignoraste "
        "incompleto incompleta 😞 😕 🙁 ☹ 😢 😤 dead corrupt irrelevant outdated inconsistent "
        "unreadable weak disagree unfortunately missing misses lost stuck hangs freezes flaky "
        "overkill undo undone verschlimmert schwach veraltet daneben falta faltan "
        "incomprensible lamentablemente desgraciadamente opposite contrario gegenteil "
        "disappoint disappoints"
    ),
    -0.25: (
        "error errors bug bugs fehler problema problemas problem problems issue issues sorry hard"
    ),
}

_PHRASES: Final[Mapping[float, str]] = {
    1.0: ("like a charm, ship it, right on the spot, could not be better"),
    0.8: (
        "did the trick, spot on, on point, looks good, looks great, nailed it, go ahead, "
        "läuft wieder, läuft jetzt, läuft super, bien hecho, learned something, lo lograste, "
        "ya funciona, no longer fails, no longer crashes, passt so, well done, good job, "
        "great job, nice job, good work, great work, keep it up, keep doing, good catch, just "
        "right, what i needed, what i wanted, the one i wanted, gut gemacht, weiter so, "
        "muchas gracias, vielen dank, buen trabajo, lo que necesitaba, ahora sí, so wollte "
        "ich, saved me, turned out great, made my day, exactly right, genau richtig, thats "
        "right, is right, was right, youre right, you are right, got it right"
    ),
    0.6: (
        "not bad, nicht schlecht, no está mal, no complaints, no problems, no issues, no "
        "errors, without problems, without any problems, without issues, without any issues, "
        "without errors, keine fehler, keine probleme, ohne probleme, ohne fehler, sin "
        "problemas, sin errores, thank you, i like, we like, really like"
    ),
    -0.8: (
        "not what, no es lo que, no era lo que, nicht was ich, nicht das was, still not, "
        "still broken, still fails, still failing, still throwing, still wrong, same "
        "exception, cant use, can not use, cannot use, makes no sense, made no sense, does "
        "nothing, did nothing, no difference, no effect, never told, never asked, didnt ask, "
        "did not ask, not true, gave up, let me down, schlägt fehl, stürzt ab, stimmt so "
        "nicht, ergibt keinen sinn, nichts gebracht, mal hecho, te olvidaste, sigue fallando, "
        "no entendiste, no tiene sentido, no ayuda, no ayudó, hilft nicht, hat nicht "
        "geholfen, waste of time, made up, not what i asked, isnt what i asked, not what i "
        "wanted, do it myself, did it myself, made things worse, made it worse, no good, "
        "zeitverschwendung, pérdida de tiempo, no sirve, no me sirve, sin funcionar, same "
        "error, same mistake, same problem, mismo error, schon wieder, stimmt nicht, stimmen "
        "nicht, full of errors, full of bugs, not work, doesnt work, didnt work, not working, "
        "never worked, funktioniert nicht, klappt nicht, geht nicht, no funciona, no "
        "funcionó, not help, didnt help, doesnt help, not compile, doesnt compile, wont "
        "compile, not run, doesnt run, wont run, not build, doesnt build, wont start, doesnt "
        "start, not right, isnt right, wasnt right, not usable, not add up, isnt it, thats "
        "not it, is empty, voller fehler, nicht gemeint, bringt mir nichts, bringt nichts, no "
        "compila, times out, timed out, hard to read, kompiliert nicht, not answering, "
        "repeating yourself, no corre, no arranca, startet nicht, läuft nicht, está mal, muy "
        "mal, salió mal, mal traducido"
    ),
    -0.6: (
        "do better, try again, start over, dont do that, do not do that, never do that, stop "
        "doing, please stop, immer noch nicht, noch immer nicht, too long, too slow, too "
        "many, too much, too complicated, zu lang, zu langsam, zu viel, demasiado largo, "
        "demasiado lento, dont like, do not like, didnt like, did not like"
    ),
    0.0: (
        "good path, happy path, better use, best way, better way, better option, läuft auf, "
        "works on, works with, works for, fast as possible, clear the, clean the, clean up, "
        "correct the, fix the, fixed width, good question, falls back, not only, no longer, "
        "would be great, would be nice, would be good, would be better, would be helpful, "
        "would be useful, wäre gut, wäre schön, wäre super, wäre toll, wäre besser, estaría "
        "bien, sería genial, sería bueno, would like, id like, looks like, good morning, "
        "guten morgen, guten tag, buenos días, bad request, error handling, error message, as "
        "well, right now, best practice, best practices, great britain, the right, on the "
        "right, fast path"
    ),
}

NEGATIONS: Final = _words(
    "not no never none nothing without cannot cant dont doesnt didnt isnt arent wasnt werent "
    "wont wouldnt couldnt shouldnt havent hasnt hadnt aint hardly barely neither nicht "
    "nie niemals kein keine keinen keiner nichts ohne kaum nunca jamás sin nada tampoco "
    "ningún ninguna ni"
)
"""Words that turn round what follows them in their clause; German ones also what goes before."""

IMPERATIVES: Final = _words(
    "add use make show write send give tell explain check fix change rename remove delete run "
    "put move set create build update install list find search read open close clear clean "
    "let do go mach mache schreib schreibe nimm zeig zeige füge ändere benutze lösche prüfe "
    "erstelle nutze gib usa haz añade cambia muestra escribe borra crea revisa envía pon dame "
    "sort replace group count return split merge convert skip include exclude test deploy "
    "commit push pull format compare summarize summarise translate rewrite draft start stop "
    "wait call ask answer load save copy paste import export print log insert select filter "
    "drop restart rerun retry continue proceed switch turn limit ignore treat document "
    "describe define refactor extract generate verify validate review ensure sortiere "
    "verschiebe starte erkläre ergänze ersetze übersetze kopiere schick speichere vergleiche "
    "elimina agrega cambiar explica ordena compara copia guarda abre corrige traduce ejecuta"
)
"""Words that make a clause an order when it begins with them, unless they judge."""

NEGATIONS_AFTER: Final = frozenset({"nicht", "nie"})

FILLERS: Final = _words(
    "a all am and are at be everything for how i im is it its job just me much my ok okay one "
    "really so such sure team that thats the this to too u very was we well what work worked "
    "working works yes you your again now alles auch arbeit das dir du es euch für gemacht hast "
    "ich ihr ist ja mir sehr und vielen war wie con de el eres esto está fue la lo muchas "
    "muchísimas muy por que qué si sí te todo trabajo tu un y"
)
"""Words that say nothing of what is praised."""

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
    for table in (_POSITIVE, _NEGATIVE):
        for grade, words in table.items():
            grades.update({(word,): grade for word in words.casefold().split()})
    for grade, phrases in _PHRASES.items():
        grades.update({tuple(one.split()): grade for one in phrases.casefold().split(",")})
    return grades


GRADES: Final[Mapping[tuple[str, ...], float]] = _graded()
"""Grade by the words of a phrase, a single word being a phrase of one. 0: says nothing."""
LONGEST: Final = max(map(len, GRADES))
