"""Words of several languages: units of time, months, totals."""

from __future__ import annotations

import re
import unicodedata

__all__ = [
    "UNITS",
    "is_total",
    "month_number",
    "plain",
    "speaks_of_time",
    "speaks_of_weeks",
    "unit_of",
]

#: What columns of parts of dates are called; English, German, French, Spanish, Italian, Dutch.
UNITS = {
    "day": ("day", "tag", "jour", "dia", "giorno", "dag"),
    "week": ("week", "woche", "kalenderwoche", "semaine", "semana", "settimana"),
    "month": ("month", "monat", "mois", "mes", "mese", "maand"),
    "quarter": ("quarter", "quartal", "trimestre", "kwartaal"),
    "year": ("year", "jahr", "annee", "ano", "anno", "jaar"),
}
_SHORT = {
    **{"dd": "day", "kw": "week", "cw": "week", "wk": "week", "mm": "month", "mon": "month"},
    **{"qtr": "quarter", "yr": "year", "yyyy": "year", "an": "year"},
}
_UNIT = {word: unit for unit, words in UNITS.items() for word in words} | _SHORT
_FILLERS = {"iso", "calendar", "no", "nr", "num", "number", "of"}
_TOTAL = re.compile(
    r"((grand |sub|general )?totals?|sum|summen?|gesamt\w*|insgesamt|somme|suma|totaal|totale)\b.*",
    re.IGNORECASE,
)
_MONTHS = (
    "january januar janner janvier enero gennaio januari",
    "february februar fevrier febrero febbraio februari",
    "march marz maerz mrz mars marzo maart mrt",
    "april avril abril aprile",
    "may mai mayo maggio mei",
    "june juni juin junio giugno",
    "july juli juillet julio luglio",
    "august aout agosto augustus",
    "september septembre septiembre settembre",
    "october oktober octobre octubre ottobre",
    "november novembre noviembre",
    "december dezember decembre diciembre dicembre",
)


def unit_of(name: str) -> str:
    """Return the unit of time that a column is called, nothing where it is called otherwise.

    Examples
    --------
    >>> from rbfdiffnet.readers.words import unit_of
    >>> unit_of("Jahr"), unit_of("ISO week"), unit_of("Année"), unit_of("month sales")
    ('year', 'week', 'year', '')
    """
    words = [word for word in _words(name) if word not in _FILLERS]
    return _UNIT.get(words[0], "") if len(words) == 1 else ""


def speaks_of_weeks(name: str) -> bool:
    """Tell whether the name of a column says that its dates are weeks.

    Examples
    --------
    >>> from rbfdiffnet.readers.words import speaks_of_weeks
    >>> speaks_of_weeks("KW"), speaks_of_weeks("year_week"), speaks_of_weeks("month")
    (True, True, False)
    """
    return any(_UNIT.get(word) == "week" or word == "yearweek" for word in _words(name))


def speaks_of_time(name: str) -> bool:
    """Tell whether the name of a column has a unit of time in it.

    Examples
    --------
    >>> from rbfdiffnet.readers.words import speaks_of_time
    >>> speaks_of_time("Fiscal Year"), speaks_of_time("yearling")
    (True, False)
    """
    return any(word in _UNIT for word in _words(name))


def month_number(word: str) -> int:
    """Return the number of a month by its name or the beginning of it, 0 where it is none.

    Examples
    --------
    >>> from rbfdiffnet.readers.words import month_number
    >>> [month_number(word) for word in ("Mär", "févr.", "dic", "Market", "ma")]
    [3, 2, 12, 0, 0]
    """
    start = plain(word).removesuffix(".")
    if len(start) < 3:
        return 0
    found = (i for i, names in enumerate(_MONTHS) if f" {start}" in f" {names}")
    return next(found, -1) + 1


def is_total(text: str) -> bool:
    """Tell whether something is called a total.

    Examples
    --------
    >>> from rbfdiffnet.readers.words import is_total
    >>> is_total("Summe Januar"), is_total("Grand Total"), is_total("Totnes")
    (True, True, False)
    """
    return _TOTAL.fullmatch(text.strip()) is not None


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", plain(name))


def plain(text: str) -> str:
    """Return text in small letters without accents.

    Examples
    --------
    >>> from rbfdiffnet.readers.words import plain
    >>> plain("Année")
    'annee'
    """
    parts = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))
