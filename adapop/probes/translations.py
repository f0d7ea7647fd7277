"""Common relations asked in five other languages, and the names of countries, continents and languages in them.

Written by hand. Subjects keep their English name, so the questions avoid articles, gender and elision around it.
"""

from __future__ import annotations

import random

from adapop.facts.fact import Fact
from adapop.facts.text import folded
from adapop.probes.wording import spoken

LANGUAGES = ("Spanish", "French", "German", "Portuguese", "Italian")
IN_ENGLISH = (
    "Responde en inglés.",
    "Réponds en anglais.",
    "Antworte auf Englisch.",
    "Responda em inglês.",
    "Rispondi in inglese.",
)

# each row: the labels of the relation, then the question in LANGUAGES; `{s}` is the subject
_QUESTIONS = """
capital, capital city
  ¿Cuál es la capital de {s}? | {s} : quelle en est la capitale ? | Wie heißt die Hauptstadt von {s}?
  | Qual é a capital de {s}? | Qual è la capitale di {s}?
capital of
  ¿De qué es capital {s}? | De quoi {s} est-elle la capitale ? | Wovon ist {s} die Hauptstadt?
  | De que {s} é a capital? | Di che cosa è capitale {s}?
country, located in country
  ¿En qué país está {s}? | Dans quel pays se trouve {s} ? | In welchem Land liegt {s}?
  | Em que país fica {s}? | In quale paese si trova {s}?
located in the administrative territorial entity, administrative territorial entity
  ¿En qué entidad administrativa está {s}? | Dans quelle entité administrative se trouve {s} ?
  | In welcher Verwaltungseinheit liegt {s}? | Em que unidade administrativa fica {s}?
  | In quale unità amministrativa si trova {s}?
continent, located on continent
  ¿En qué continente está {s}? | Sur quel continent se trouve {s} ? | Auf welchem Kontinent liegt {s}?
  | Em que continente fica {s}? | In quale continente si trova {s}?
located in or next to body of water
  ¿Junto a qué río, lago o mar está {s}? | {s} : au bord de quel cours d'eau, lac ou mer est-ce ?
  | An welchem Fluss, See oder Meer liegt {s}? | Junto a que rio, lago ou mar fica {s}?
  | Presso quale fiume, lago o mare si trova {s}?
shares border with, borders
  ¿Con qué territorio limita {s}? | {s} : avec quel territoire y a-t-il une frontière commune ?
  | An welches Gebiet grenzt {s}? | Com que território {s} faz fronteira? | Con quale territorio confina {s}?
official language
  ¿Cuál es el idioma oficial de {s}? | {s} : quelle en est la langue officielle ? | Was ist die Amtssprache von {s}?
  | Qual é a língua oficial de {s}? | Qual è la lingua ufficiale di {s}?
language, language used
  ¿Cuál es el idioma de {s}? | {s} : quelle en est la langue ? | Was ist die Sprache von {s}?
  | Qual é a língua de {s}? | Qual è la lingua di {s}?
currency
  ¿Cuál es la moneda de {s}? | {s} : quelle en est la monnaie ? | Was ist die Währung von {s}?
  | Qual é a moeda de {s}? | Qual è la valuta di {s}?
author, writer, written by
  ¿Quién escribió «{s}»? | Qui a écrit « {s} » ? | Wer hat „{s}“ geschrieben?
  | Quem escreveu “{s}”? | Chi ha scritto «{s}»?
director, directed by
  ¿Quién dirigió «{s}»? | Qui a réalisé « {s} » ? | Wer hat bei „{s}“ Regie geführt?
  | Quem dirigiu “{s}”? | Chi ha diretto «{s}»?
composer, composed by
  ¿Quién compuso «{s}»? | Qui a composé « {s} » ? | Wer hat „{s}“ komponiert?
  | Quem compôs “{s}”? | Chi ha composto «{s}»?
painter, painted by
  ¿Quién pintó «{s}»? | Qui a peint « {s} » ? | Wer hat „{s}“ gemalt?
  | Quem pintou “{s}”? | Chi ha dipinto «{s}»?
creator, created by
  ¿Quién creó «{s}»? | Qui a créé « {s} » ? | Wer hat „{s}“ geschaffen?
  | Quem criou “{s}”? | Chi ha creato «{s}»?
performer, artist
  ¿Quién interpreta «{s}»? | Qui interprète « {s} » ? | Wer ist der Interpret von „{s}“?
  | Quem interpreta “{s}”? | Chi interpreta «{s}»?
founder, founded by
  ¿Quién fundó {s}? | Qui a fondé {s} ? | Wer hat {s} gegründet? | Quem fundou {s}? | Chi ha fondato {s}?
place of birth, birthplace, born in
  ¿Dónde nació {s}? | {s} : quel est son lieu de naissance ? | Wo wurde {s} geboren?
  | Onde nasceu {s}? | Qual è il luogo di nascita di {s}?
date of birth
  ¿Cuándo nació {s}? | {s} : quelle est sa date de naissance ? | Wann wurde {s} geboren?
  | Quando nasceu {s}? | Qual è la data di nascita di {s}?
place of death, died in
  ¿Dónde murió {s}? | {s} : quel est son lieu de décès ? | Wo ist {s} gestorben?
  | Onde morreu {s}? | Qual è il luogo di morte di {s}?
spouse, married to
  ¿Quién es el cónyuge de {s}? | {s} : qui est son époux ou son épouse ? | Mit wem ist {s} verheiratet?
  | Quem é o cônjuge de {s}? | Chi è il coniuge di {s}?
occupation, profession
  ¿Cuál es la profesión de {s}? | {s} : quelle est sa profession ? | Welchen Beruf hat {s}?
  | Qual é a profissão de {s}? | Qual è la professione di {s}?
country of citizenship, nationality, citizenship
  ¿Cuál es la nacionalidad de {s}? | {s} : quelle est sa nationalité ? | Welche Staatsangehörigkeit hat {s}?
  | Qual é a nacionalidade de {s}? | Qual è la cittadinanza di {s}?
"""

# each row: the English names, then the name in LANGUAGES
_NAMES = """
Afghanistan | Afganistán | Afghanistan | Afghanistan | Afeganistão | Afghanistan
Algeria | Argelia | Algérie | Algerien | Argélia | Algeria
Argentina | Argentina | Argentine | Argentinien | Argentina | Argentina
Australia | Australia | Australie | Australien | Austrália | Australia
Austria | Austria | Autriche | Österreich | Áustria | Austria
Bangladesh | Bangladés | Bangladesh | Bangladesch | Bangladesh | Bangladesh
Belgium | Bélgica | Belgique | Belgien | Bélgica | Belgio
Brazil | Brasil | Brésil | Brasilien | Brasil | Brasile
Canada | Canadá | Canada | Kanada | Canadá | Canada
Chile | Chile | Chili | Chile | Chile | Cile
China, People's Republic of China | China | Chine | China | China | Cina
Colombia | Colombia | Colombie | Kolumbien | Colômbia | Colombia
Cuba | Cuba | Cuba | Kuba | Cuba | Cuba
Czech Republic, Czechia | República Checa | Tchéquie | Tschechien | República Checa | Repubblica Ceca
Denmark | Dinamarca | Danemark | Dänemark | Dinamarca | Danimarca
Ecuador | Ecuador | Équateur | Ecuador | Equador | Ecuador
Egypt | Egipto | Égypte | Ägypten | Egito | Egitto
Ethiopia | Etiopía | Éthiopie | Äthiopien | Etiópia | Etiopia
Finland | Finlandia | Finlande | Finnland | Finlândia | Finlandia
France | Francia | France | Frankreich | França | Francia
Germany | Alemania | Allemagne | Deutschland | Alemanha | Germania
Greece | Grecia | Grèce | Griechenland | Grécia | Grecia
Hungary | Hungría | Hongrie | Ungarn | Hungria | Ungheria
India | India | Inde | Indien | Índia | India
Indonesia | Indonesia | Indonésie | Indonesien | Indonésia | Indonesia
Iran | Irán | Iran | Iran | Irã | Iran
Iraq | Irak | Irak | Irak | Iraque | Iraq
Ireland, Republic of Ireland | Irlanda | Irlande | Irland | Irlanda | Irlanda
Israel | Israel | Israël | Israel | Israel | Israele
Italy | Italia | Italie | Italien | Itália | Italia
Japan | Japón | Japon | Japan | Japão | Giappone
Kazakhstan | Kazajistán | Kazakhstan | Kasachstan | Cazaquistão | Kazakistan
Kenya | Kenia | Kenya | Kenia | Quênia | Kenya
Malaysia | Malasia | Malaisie | Malaysia | Malásia | Malaysia
Mexico | México | Mexique | Mexiko | México | Messico
Morocco | Marruecos | Maroc | Marokko | Marrocos | Marocco
Netherlands, Kingdom of the Netherlands | Países Bajos | Pays-Bas | Niederlande | Países Baixos | Paesi Bassi
New Zealand | Nueva Zelanda | Nouvelle-Zélande | Neuseeland | Nova Zelândia | Nuova Zelanda
Norway | Noruega | Norvège | Norwegen | Noruega | Norvegia
Pakistan | Pakistán | Pakistan | Pakistan | Paquistão | Pakistan
Peru | Perú | Pérou | Peru | Peru | Perù
Philippines | Filipinas | Philippines | Philippinen | Filipinas | Filippine
Poland | Polonia | Pologne | Polen | Polônia | Polonia
Portugal | Portugal | Portugal | Portugal | Portugal | Portogallo
Romania | Rumanía | Roumanie | Rumänien | Romênia | Romania
Russia, Russian Federation | Rusia | Russie | Russland | Rússia | Russia
Saudi Arabia | Arabia Saudita | Arabie saoudite | Saudi-Arabien | Arábia Saudita | Arabia Saudita
South Africa | Sudáfrica | Afrique du Sud | Südafrika | África do Sul | Sudafrica
South Korea | Corea del Sur | Corée du Sud | Südkorea | Coreia do Sul | Corea del Sud
Spain | España | Espagne | Spanien | Espanha | Spagna
Sweden | Suecia | Suède | Schweden | Suécia | Svezia
Switzerland | Suiza | Suisse | Schweiz | Suíça | Svizzera
Thailand | Tailandia | Thaïlande | Thailand | Tailândia | Thailandia
Turkey, Türkiye | Turquía | Turquie | Türkei | Turquia | Turchia
Ukraine | Ucrania | Ukraine | Ukraine | Ucrânia | Ucraina
United Kingdom | Reino Unido | Royaume-Uni | Vereinigtes Königreich | Reino Unido | Regno Unito
United States, United States of America
  | Estados Unidos | États-Unis | Vereinigte Staaten | Estados Unidos | Stati Uniti
Venezuela | Venezuela | Venezuela | Venezuela | Venezuela | Venezuela
Vietnam | Vietnam | Viêt Nam | Vietnam | Vietnã | Vietnam
Africa | África | Afrique | Afrika | África | Africa
Asia | Asia | Asie | Asien | Ásia | Asia
Europe | Europa | Europe | Europa | Europa | Europa
North America | América del Norte | Amérique du Nord | Nordamerika | América do Norte | America settentrionale
South America | América del Sur | Amérique du Sud | Südamerika | América do Sul | America meridionale
Oceania | Oceanía | Océanie | Ozeanien | Oceania | Oceania
Arabic | árabe | arabe | Arabisch | árabe | arabo
Bengali, Bangla | bengalí | bengali | Bengalisch | bengali | bengalese
Chinese | chino | chinois | Chinesisch | chinês | cinese
Dutch | neerlandés | néerlandais | Niederländisch | neerlandês | olandese
English | inglés | anglais | Englisch | inglês | inglese
French | francés | français | Französisch | francês | francese
German | alemán | allemand | Deutsch | alemão | tedesco
Greek | griego | grec | Griechisch | grego | greco
Hindi | hindi | hindi | Hindi | hindi | hindi
Italian | italiano | italien | Italienisch | italiano | italiano
Japanese | japonés | japonais | Japanisch | japonês | giapponese
Korean | coreano | coréen | Koreanisch | coreano | coreano
Polish | polaco | polonais | Polnisch | polonês | polacco
Portuguese | portugués | portugais | Portugiesisch | português | portoghese
Russian | ruso | russe | Russisch | russo | russo
Spanish | español | espagnol | Spanisch | espanhol | spagnolo
Swedish | sueco | suédois | Schwedisch | sueco | svedese
Turkish | turco | turc | Türkisch | turco | turco
"""


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """Names, folded -> the five cells of their row. A row goes on over its indented lines."""
    rows: list[list[str]] = []
    for line in text.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|") if cell.strip()]
        if line.startswith(" "):
            rows[-1] += cells
        else:
            rows.append(cells)
    return {folded(name): tuple(cells) for names, *cells in rows for name in names.split(", ")}


QUESTIONS = _table(_QUESTIONS)
NAMES = _table(_NAMES)


def translated(fact: Fact, rng: random.Random) -> tuple[str, tuple[str, ...]] | None:
    """The fact's question in a language drawn by `rng`, and the answer's name in it where we know one.

    Where we know none, the question asks for an answer in English. None if the relation is not in the table.
    """
    asked = "capital" if _asks_for_the_capital(fact) else folded(spoken(fact.relation))
    if asked not in QUESTIONS or not fact.subject:
        return None
    i = rng.randrange(len(LANGUAGES))
    question = QUESTIONS[asked][i].format(s=fact.subject)
    if names := NAMES.get(folded(fact.answer)):
        return question, (names[i],) if folded(names[i]) != folded(fact.answer) else ()
    return f"{IN_ENGLISH[i]} {question}", ()


def _asks_for_the_capital(fact: Fact) -> bool:
    """DUET asks "What is the capital of X?" where X is the capital; a translation has to ask what the question asks."""
    return folded(fact.relation) == "capital of" and f"capital of {folded(fact.subject)}" in folded(fact.question)
