"""English stop words, by the class of word they belong to.

Source: compiled for this package from the closed classes of English grammar (pronouns,
determiners, prepositions, conjunctions, auxiliary verbs, numerals), with the adverbs, quantifiers
and bare verbs that any running text holds, the pieces that remain of contractions once they are
split at the apostrophe, and the marks of a page that are not its text. The list is lower-case.
"""

from __future__ import annotations

_CLASSES = {
    "pronouns": """
        i me my mine myself we us our ours ourselves you your yours yourself yourselves he him
        his himself she her hers herself it its itself they them their theirs themselves one
        ones oneself who whom whose which what whoever whatever whichever this that these those
        somebody someone something anybody anyone anything nobody none nothing everybody
        everyone everything other others another each
    """,
    "determiners and quantifiers": """
        a an the some any no every either neither both all half several many much more most few
        fewer fewest little less least enough such own same various certain whole former latter
    """,
    "prepositions": """
        about above across after against along alongside amid among amongst around as at atop
        before behind below beneath beside besides between beyond by concerning despite down due
        during except for from in inside into like near of off on onto opposite out outside over
        past per regarding round since than through throughout till to toward towards under
        underneath unlike until unto up upon versus via with within without
    """,
    "conjunctions": """
        and but or nor so yet because although though while whilst whereas whether if unless
        when whenever where wherever why how however lest once
    """,
    "auxiliary verbs": """
        am is are was were be been being have has had having do does did doing done can could
        may might must shall should will would ought cannot need dare used
    """,
    "adverbs": """
        afterwards again ago ahead almost alone already also altogether always anyhow anyway
        anywhere apart aside away back beforehand else elsewhere especially even ever everywhere
        far further furthermore hence here hereafter hereby herein indeed instead just largely
        later mainly maybe meanwhile merely moreover mostly namely nearly never nevertheless
        next nonetheless not now nowhere often only otherwise perhaps quite rather really
        recently seldom similarly somehow sometime sometimes somewhat somewhere soon still then
        thence there thereafter thereby therefore therein thus together too twice usually very
        well whence whereby wherein
    """,
    "bare verbs": """
        became become becomes becoming began begin begins came come comes coming find finds
        found gave get gets getting give given gives giving go goes going gone got keep keeps
        kept let lets made make makes making put puts said saw say saying says see seem seemed
        seeming seems seen sees take taken takes taking took use uses using went
    """,
    "numerals": """
        zero two three four five six seven eight nine ten eleven twelve twenty thirty forty
        fifty sixty seventy eighty ninety hundred thousand million billion first second third
        fourth fifth sixth seventh eighth ninth tenth last
    """,
    "pieces of contractions": """
        s t d m ll re ve don didn doesn isn aren wasn weren won wouldn couldn shouldn hadn hasn
        haven mustn mightn needn shan ain ma
    """,
    "marks of a page": """
        unk etc eg ie http https www com org html ref isbn nbsp
    """,
}

STOP_WORDS = frozenset(word for text in _CLASSES.values() for word in text.split())
