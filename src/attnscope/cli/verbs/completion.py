"""``attnscope completion SHELL``: what lets a shell complete commands, flags and names."""

from __future__ import annotations

import argparse
from argparse import Namespace

from attnscope.cli.arguments import Parser, one_of
from attnscope.errors import AttnscopeError

SAYS = 'completion for your shell: eval "$(attnscope completion bash)"'
SCRIPTS = {
    "bash": """_attnscope() {
  local IFS=$'\\n'
  COMPREPLY=($(attnscope completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _attnscope attnscope""",
    "zsh": """#compdef attnscope
_attnscope() {
  local -a found
  found=("${(@f)$(attnscope completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _attnscope attnscope""",
    "fish": """function __attnscope
  attnscope completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c attnscope -a '(__attnscope)'""",
}
HINTS = {
    "bash": 'eval "$(attnscope completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(attnscope completion zsh)" in ~/.zshrc, after compinit',
    "fish": "attnscope completion fish | source, in ~/.config/fish/config.fish",
}


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.usage = "attnscope completion {bash,zsh,fish}"
    parser.description = "Prints a script for the shell. Lasting: " + "; ".join(HINTS.values())
    parser.add_argument("shell", type=_shell, metavar="SHELL", help="bash, zsh or fish")
    parser.add_argument("typed", nargs="*", help=argparse.SUPPRESS)


def _shell(text: str) -> str:
    """Read the name of a shell; the scripts themselves ask for ``words``."""
    return text if text == "words" else one_of(SCRIPTS)(text)


def call(options: Namespace) -> int:
    """Print the script, or, asked by it, what the last word may become."""
    if options.shell != "words":
        print(SCRIPTS[options.shell])
        return 0
    for word in complete(options.typed):
        print(word)
    return 0


def complete(words: list[str]) -> list[str]:
    """Return what the last of some words may become; none where files are meant.

    Args:
        words: what was typed after ``attnscope``; the last word is unfinished.
    """
    from attnscope.cli import parser_of
    from attnscope.cli.verbs import VERBS

    *before, last = words or [""]
    if not before:
        return [verb for verb in VERBS if verb.startswith(last)]
    verb, *rest = before
    if verb not in VERBS:
        return []
    try:
        # The settings of a study are known once it is imported, which takes a second.
        named = rest if last.startswith("-") else []
        parser = parser_of(verb, named)
    except AttnscopeError:
        parser = parser_of(verb)
    known = {flag: each for each in parser.actions() for flag in each.option_strings}
    if last.startswith("-"):
        said = {known[word].dest for word in rest if word in known}
        found = [flag for flag in parser.flags() if known[flag].dest not in said]
    elif rest and rest[-1] in known and known[rest[-1]].nargs != 0:
        found = [str(each) for each in known[rest[-1]].choices or ()]
    else:
        found = _names(verb, [word for word in rest if not word.startswith("-")])
    return [word for word in found if word.startswith(last)]


def _names(verb: str, before: list[str]) -> list[str]:
    """Return the names that may stand after a command."""
    if verb in ("run", "sweep") and not before:
        from attnscope.catalogue import names

        return names()
    if verb in ("claims", "list") and not before:
        from attnscope.catalogue import papers

        return papers()
    if verb == "data" and before in ([], ["check"], ["get"]):
        from attnscope.datasets.catalogue import CATALOGUE

        return [*CATALOGUE, *([] if before else ["check", "get"])]
    if verb == "models":
        from attnscope.pretrained.wheels import WHEELS

        return ["get"] if not before else list(WHEELS)
    if verb == "completion" and not before:
        return list(SCRIPTS)
    return []
