"""Words that only hold a sentence together, by language, hand-picked.

They are left out of questions, never out of the index, and only where something else remains.
Words of negation are not among them: "never" and "without" tell texts apart.
"""

from __future__ import annotations

FUNCTION_WORDS: dict[str, str] = {
    "english": """
        a about am an and any are as at be been being but by can could did do does doing for from
        had has have having he her here hers him his how i if in into is it its me my of off on
        or our ours she should so some than that the their theirs them then there these they this
        those to too us was we were what when where which while who whom whose why will with would
        you your yours
    """,
    "german": """
        aber als am an auch auf aus bei beim bin bis bist da damit dann das dass dein deine dem den
        der des die dies diese diesem diesen dieser dieses du durch ein eine einem einen einer
        eines er es für habe haben hat hatte hatten ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im
        in ins ist ja kann können man mein meine mich mir mit nach noch ob oder sein seine sich sie
        sind so über um und uns unser unter vom von vor war waren warum was welche welcher welches
        wann wem wen wenn wer werden wie wir wird wo wurde wurden zu zum zur
    """,
    "french": """
        à ai as au aux avec avez avons ce ces cet cette combien comment dans de des dont du elle
        elles en est et été être eu il ils je l la le les leur leurs lui ma mais me mes moi mon nos
        notre nous on ont ou où par pour pourquoi qu quand que quel quelle quelles quels qui quoi
        sa se ses si son sont sur ta te tes toi ton tu un une vos votre vous y
    """,
    "spanish": """
        a al como cómo con cual cuál cuales cuáles cuando cuándo cuanto cuánto de del desde donde
        dónde e el ella ellas ellos en era eran es esa ese eso esta estaba están está este esto fue
        ha han hay la las le les lo los me mi mis nos o para pero por porque que qué quien quién se
        ser si son su sus te tiene tu tus un una uno unos unas y yo
    """,
    "italian": """
        a ad ai al alla alle allo anche che chi ci come con cosa cui da dai dal dalla dalle dei del
        della delle dello di dove e è ed era gli ha hai hanno ho i il in io la le lei li lo loro lui
        ma mi mio nei nel nella nelle noi o per perché più qual quale quali quando quanto quella
        quelle quello questa queste questo qui se sei si sono su sua sul sulla suo tu tua tuo un una
        uno vi voi
    """,
    "portuguese": """
        a ao aos as até com como da das de dela dele do dos e é ela elas ele eles em era essa esse
        esta está este eu foi há isso isto já lhe mais mas me meu minha na nas no nos o onde os ou
        para pela pelo por porque qual quais quando quanto que quem se ser seu seus sua suas são
        também te tem um uma você
    """,
    "dutch": """
        aan als bij daar dan dat de deze die dit door dus een en er had hebben heeft het hem hier
        hij hoe hun ik in is ja je kan maar me met mij mijn naar nog of om onder ons ook op over te
        tot u uit van voor waar waarom wanneer want waren was wat we welk welke wel wie wij worden
        wordt zal ze zich zij zijn zo zou
    """,
}
