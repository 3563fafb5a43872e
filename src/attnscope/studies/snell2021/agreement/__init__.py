"""Attention agrees with lexical knowledge learned without it, on real data (Tables 2 to 8, 10)."""

from attnscope.studies.snell2021.agreement.study import Agreement as Agreement
