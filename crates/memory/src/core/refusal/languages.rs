//! Refusals in other languages than English.
//!
//! A reply is divided at its punctuation marks. Each clause must refuse, or be one that may come beside a refusal
//! ("I am sorry", "according to the text", "who lit the lamp"). So a clause with an answer makes the reply an answer.

use std::sync::LazyLock;

use regex::Regex;

use super::plain;

/// The refusals of a language: regular expressions of whole clauses in the words of [`plain`]. The other fields are
/// inserted for `TEXT`, `IN`, `THIS` and `ASKED`.
struct Language {
    /// Names of the text.
    text: &'static str,
    /// "in the text".
    within: &'static str,
    /// What is not in it: "this", "the answer".
    this: &'static str,
    /// Indirect questions.
    asked: &'static str,
    refusals: &'static [&'static str],
    /// Other clauses that may come beside a refusal.
    beside: &'static str,
    /// Words with which a clause goes beyond a refusal.
    beyond: &'static str,
}

/// The expressions of a language.
struct Forms {
    refusal: Regex,
    beside: Regex,
    beyond: Regex,
}

impl Language {
    fn forms(&self) -> Forms {
        let regex = |form: &str| {
            let form = form.replace("ASKED", self.asked).replace("IN", self.within);
            let form = form.replace("THIS", self.this).replace("TEXT", self.text);
            Regex::new(&form).expect("the forms are regular expressions")
        };
        Forms {
            refusal: regex(&format!("^(?:{})$", self.refusals.join("|"))),
            beside: regex(&format!("^(?:{}|IN|ASKED)$", self.beside)),
            beyond: regex(self.beyond),
        }
    }
}

impl Forms {
    fn refuse(&self, clauses: &[String]) -> bool {
        let refuses = |clause: &String| self.refusal.is_match(clause);
        clauses.iter().any(refuses)
            && clauses
                .iter()
                .all(|clause| (refuses(clause) || self.beside.is_match(clause)) && !self.beyond.is_match(clause))
    }
}

/// Whether a reply in one of the languages states no more than that there is no answer.
pub(super) fn is_refusal(text: &str) -> bool {
    let clauses = text.split(SEPARATORS).map(plain).map(|clause| clause.replace(is_vowel_sign, ""));
    let clauses: Vec<String> = clauses.filter(|clause| !clause.is_empty()).collect();
    FORMS.iter().any(|forms| forms.refuse(&clauses))
}

/// Marks between clauses.
const SEPARATORS: [char; 20] = [
    '.', '!', '?', ',', ';', ':', '(', ')', '\n', '\u{2013}', '\u{2014}', '。', '！', '？', '，', '；', '：', '،', '؛',
    '؟',
];

/// Arabic vowel signs and the sign that lengthens a word, which few texts have.
fn is_vowel_sign(sign: char) -> bool {
    matches!(sign, '\u{640}' | '\u{64b}'..='\u{652}')
}

static FORMS: LazyLock<Vec<Forms>> = LazyLock::new(|| LANGUAGES.iter().map(Language::forms).collect());

const LANGUAGES: [Language; 8] = [
    // Spanish.
    Language {
        text: "(?:(?:el|la|los|las|este|esta|estos|estas|dicho|dicha) )?(?:textos?|documentos?|pasajes?|páginas?|\
             contexto|conversación|fragmentos?|artículos?|historia|relato|fuentes?|extractos?|notas)(?: \
             (?:proporcionad|dad|facilitad|disponible)\\S*)?",
        within: "en TEXT",
        this: "(?:eso|esto|ello|la respuesta|(?:la|esa|esta) información)",
        asked: "(?:quién|quiénes|qué|cuál|cuáles|cuándo|dónde|cómo|por qué|cuánt\\S+|si) .*",
        refusals: &[
            "TEXT no (?:lo |la |se )?(?:menciona|indica|especifica|detalla|aclara|explica|precisa|proporciona|dice|\
             describe|responde)n?(?: .*)?",
            "TEXT no (?:contiene|incluye|ofrece|da|tiene)n? (?:\\S+ )?(?:información|respuesta|mención|datos)(?: .*)?",
            "(?:.* )?no se (?:menciona|indica|especifica|detalla|aclara|explica|precisa|dice|describe)n? en TEXT",
            "(?:(?:eso|esto|IN) )?no se (?:menciona|indica|especifica|detalla|aclara|explica|precisa|proporciona|\
             dice|sabe|conoce)(?: ASKED| THIS)?",
            "(?:THIS )?no (?:(?:está|aparece|figura|consta|se encuentra)n? )?en TEXT",
            "(?:.* )?no (?:está|es|fue|viene)n? (?:mencionad|indicad|especificad|descrit|precisad|disponible)\\S* en \
             TEXT",
            "(?:THIS )?no (?:(?:está|es|fue) )?(?:mencionad|indicad|especificad|precisad)[oa]s?(?: en TEXT)?",
            "(?:(?:es|THIS es) )?desconocid[oa]",
            "no hay (?:ninguna |suficiente )?(?:información|mención|respuesta|datos)(?: suficientes?| \
             disponibles?)?(?: (?:sobre|acerca|al respecto|para responder|en TEXT)(?: .*)?)?",
            "no lo sé",
            "no (?:se puede|puedo|es posible) (?:determinar|responder|saber|inferir)(?:l[oa])?(?: (?:a )?(?:la|esta|\
             esa) pregunta| eso| esto| ASKED)?(?: (?:a partir del?|con|en|según) TEXT)?",
        ],
        beside: "lo siento|lamentablemente|desafortunadamente|(?:según|de acuerdo con) TEXT",
        beyond: "(?:^| )(?:pero|aunque|embargo|sino|salvo|excepto|probablemente|quizás?)(?: |$)",
    },
    // French.
    Language {
        text: "(?:(?:le|la|les|ce|cet|cette|ces|du|des) |l')?(?:textes?|documents?|passages?|pages?|contexte|\
             conversation|extraits?|articles?|histoire|récit|sources?|notes)(?: (?:fourni|donné|disponible)\\S*)?",
        within: "dans TEXT",
        this: "(?:cela|ça|ceci|ce|la réponse|(?:cette |l')information)",
        asked: "(?:qui|que|quoi|ce qu\\S+|quel\\S*|quand|où|comment|pourquoi|combien|si) .*",
        refusals: &[
            "TEXT n(?:e |')(?:le |la |l'|en )?(?:mentionne|indique|précise|spécifie|explique|donne|dit|disent|décrit|\
             décrivent|fournit|répond)(?:nt)? (?:pas|rien)(?: .*)?",
            "TEXT n(?:e |')(?:contient|contiennent|comporte|fournit|donne|offre) (?:pas (?:d'|de |la |cette |assez \
             d'|suffisamment d')|aucune )(?:informations?|réponse|mention)(?: .*)?",
            "(?:.* )?n'(?:est|sont|était) (?:pas|jamais) (?:mentionné|indiqué|précisé|spécifié|décrit|donné)\\S* \
             dans TEXT",
            "(?:THIS|il) n'est pas (?:mentionné|indiqué|précisé|spécifié)e?(?: dans TEXT)?(?: ASKED)?",
            "THIS ne (?:se trouve|figure) pas dans TEXT",
            "THIS n'est pas (?:connue?|disponible|fournie?|donnée?|dans TEXT)(?: dans TEXT)?",
            "(?:non|pas) (?:mentionné|indiqué|précisé|spécifié)e?(?: dans TEXT)?",
            "pas dans TEXT",
            "(?:il n'y a )?(?:pas (?:d'|de |assez d'|suffisamment d')|aucune )(?:informations?|réponse|mention)(?: \
             (?:disponible|à ce sujet|dans TEXT|sur|concernant|pour répondre)(?: .*)?)?",
            "(?:c'est |THIS est )?inconnue?",
            "je ne (?:le )?sais pas",
            "(?:on|je) ne peu[tx] pas (?:le )?(?:déterminer|savoir|répondre|dire)(?: ASKED| cela| à (?:la|cette) \
             question)?(?: (?:à partir d[eu]s?|d'après|dans|selon) TEXT)?",
            "il est impossible de (?:le )?(?:déterminer|savoir|répondre|dire)(?: ASKED| cela| à (?:la|cette) \
             question)?(?: (?:à partir d[eu]s?|d'après|dans|selon) TEXT)?",
        ],
        beside: "désolée?|je suis désolée?|malheureusement|(?:selon|d'après) TEXT",
        beyond: "(?:^| )(?:mais|cependant|toutefois|pourtant|sauf|probablement)(?: |$)",
    },
    // German.
    Language {
        text: "(?:(?:der|die|das|den|dem|dieser|diese|dieses|diesem|diesen) )?(?:(?:bereitgestellt|gegeben|vorliegend|\
             vorhanden|obig)\\S+ )?(?:text(?:en|es|e|s)?|dokument(?:en|es|e|s)?|passagen?|abschnitte?n?|seiten?|\
             kontext|gesprächs?|unterlagen|artikeln?|geschichte|erzählung|quellen?|auszug|auszügen?|notizen)",
        within: "(?:(?:im|in|aus|vom|zum) )TEXT",
        this: "(?:das|dies|es|die antwort|diese information|die information)",
        asked: "(?:wer|wen|wem|wessen|was|welche\\S*|wann|wo|wohin|woher|wie|warum|weshalb|ob) .*",
        refusals: &[
            "TEXT (?:erwähn|nenn|besag|beschreib|erklär|beantworte|sag)(?:t|en|n)(?: \\S+){0,5} nichts?(?: (?:dazu|\
             darüber))?",
            "TEXT (?:erwähn|nenn|sag|geb|gib)(?:t|en) (?:keine\\S* .*|nichts (?:zu|über) .*)",
            "TEXT (?:enthält|enthalten|bietet|bieten|gibt|geben|liefert|liefern) (?:dazu |darüber )?keine\\S* \
             (?:\\S+ )?(?:information\\S*|angaben?|antwort|hinweise?|auskunft)(?: .*)?",
            "leider (?:enthält|enthalten|nennt|nennen|sagt|sagen|erwähnt|erwähnen) TEXT (?:(?:das |es )?nicht|\
             (?:dazu )?keine (?:information\\S*|angaben|antwort)(?: .*)?)",
            "(?:THIS )?(?:steht|stehen|ist|sind|findet sich|finden sich) (?:leider )?nicht IN",
            "(?:THIS )?(?:wird|werden|wurde|ist|sind) (?:IN )?(?:leider )?nicht (?:IN )?(?:erwähnt|genannt|angegeben|\
             beschrieben|gesagt|bekannt|enthalten)",
            ".* (?:wird|werden|wurde|ist|sind) (?:IN nicht|nicht IN) (?:erwähnt|genannt|angegeben|beschrieben|gesagt|\
             enthalten)",
            "(?:.* )?geht (?:nicht aus TEXT|aus TEXT nicht) hervor",
            "IN (?:(?:wird|werden|ist|sind) (?:das |es |dies )?)?nicht (?:erwähnt|genannt|angegeben|beschrieben|\
             gesagt)",
            "nicht (?:erwähnt|genannt|angegeben|bekannt|IN(?: (?:erwähnt|genannt|angegeben|enthalten))?)",
            "(?:(?:es|dazu|darüber|hierzu) gibt (?:es )?)?(?:IN )?keine (?:ausreichenden |genauen \
             )?(?:information\\S*|angaben?|antwort|hinweise)(?: (?:dazu|darüber|vorhanden|verfügbar|zu|über|IN)(?: \
             .*)?)?",
            "(?:THIS ist )?unbekannt",
            "(?:das weiß ich|ich weiß(?: es| das)?) nicht",
            "(?:THIS|(?:die|diese) frage) (?:lässt sich|kann) (?:IN )?nicht (?:IN )?(?:bestimmen|feststellen|\
             ermitteln|beantworte[nt]|bestimmt|ermittelt)(?: werden)?",
            "ich (?:kann|konnte) (?:es|das|dies|die antwort|(?:die|diese) frage) (?:IN )?nicht (?:IN )?(?:bestimmen|\
             feststellen|ermitteln|beantworten|finden)",
        ],
        beside: "leider|entschuldigung|(?:es )?tut mir leid|(?:laut|gemäß) TEXT",
        beyond: "(?:^| )(?:aber|jedoch|sondern|allerdings|obwohl|wahrscheinlich|vermutlich|außer|doch)(?: |$)",
    },
    // Italian.
    Language {
        text: "(?:(?:il|lo|la|i|gli|le|questo|questa|questi|queste) |l')?(?:test[oi]|document[oi]|passagg\\S+|bran[oi]|\
             pagin[ae]|contesto|conversazion[ei]|articol[oi]|storia|racconto|font[ei]|estratt[oi]|note)(?: (?:fornit|\
             dat|disponibil)[oaie])?",
        within: "(?:(?:nel|nella|nello|nei|negli|nelle|dal|dalla|dai|dalle|in) |nell'|dall')TEXT",
        this: "(?:questo|ciò|la risposta|(?:questa |l')informazione)",
        asked: "(?:chi|che cosa|cosa|qual\\S*|quando|dove|come|perché|quant\\S+|se) .*",
        refusals: &[
            "TEXT non (?:lo |la |ne )?(?:menziona(?:no)?|indica(?:no)?|specifica(?:no)?|precisa(?:no)?|dice|dicono|\
             descriv(?:e|ono)|spiega(?:no)?|riporta(?:no)?|rispond(?:e|ono))(?: .*)?",
            "TEXT non (?:contien|contengon|includ|offr|fornisc|forniscon)[eo](?:no)? (?:\\S+ |l')?(?:informazion[ei]|\
             risposta|menzione)(?: .*)?",
            "(?:.* )?non (?:è|sono|viene|vengono|era) (?:menzionat|indicat|specificat|precisat|descritt|\
             riportat)[oaie] IN",
            "THIS non è disponibile(?: IN)?",
            "(?:(?:THIS|IN) )?non (?:(?:è|viene|sono|vengono) )?(?:menzionat|indicat|specificat|precisat|\
             riportat)[oaie](?: IN)?(?: ASKED)?",
            "(?:THIS )?non (?:(?:si trova|è|compare|appare|figura) )?IN",
            "non si (?:dice|sa|menziona|specifica|indica)(?: IN)?(?: ASKED)?",
            "(?:non (?:ci sono|c'è|vi sono|ho) (?:alcuna |abbastanza |sufficienti )?|(?:non c'è )?nessuna \
             )(?:informazion[ei]|menzione|risposta)(?: sufficient[ei]| disponibil[ei])?(?: (?:su|sul|sulla|al \
             riguardo|in merito|per rispondere|IN)(?: .*)?)?",
            "(?:è |THIS è )?sconosciut[oa]",
            "non lo so",
            "(?:THIS )?non (?:si può|può essere|posso|è possibile) (?:determinar|risponder|stabilir|saper|determinat|\
             stabilit)\\S+(?: (?:a|alla) (?:questa )?domanda| ASKED)?(?: (?:in base (?:al|ai|alla|alle) TEXT|IN))?",
        ],
        beside: "mi dispiace|purtroppo|spiacente|(?:secondo|in base (?:al|ai|alla|alle)) TEXT",
        beyond: "(?:^| )(?:ma|però|tuttavia|sebbene|anche|probabilmente|tranne|bensì)(?: |$)",
    },
    // Portuguese.
    Language {
        text: "(?:(?:o|a|os|as|este|esta|estes|estas|esse|essa) )?(?:textos?|documentos?|passage(?:m|ns)|trechos?|\
             páginas?|contexto|conversas?|artigos?|história|relato|fontes?|notas)(?: (?:fornecid|dad|disponíve|\
             apresentad)\\S*)?",
        within: "(?:n[oa]s?|nest[ea]s?|ness[ea]s?|em) TEXT",
        this: "(?:isso|isto|a resposta|(?:a|essa|esta) informação)",
        asked: "(?:quem|o que|que|qual|quais|quando|onde|como|por que|quant\\S+|se) .*",
        refusals: &[
            "TEXT não (?:o |a )?(?:menciona|indica|especifica|informa|explica|esclarece|diz|descreve|responde|\
             cita)m?(?: .*)?",
            "TEXT não (?:dizem|cont[eéê]m|inclui|incluem|oferecem?|trazem?|traz|t[eê]m|fornecem?) (?:\\S+ \
             )?(?:informaç(?:ão|ões)|resposta|menção)(?: .*)?",
            "(?:.* )?não (?:é|são|foi|foram|está|estão) (?:mencionad|indicad|especificad|informad|descrit|\
             citad)[oa]s? IN",
            "THIS não está disponível(?: IN)?",
            "(?:(?:THIS|IN) )?não (?:(?:é|foi|está) )?(?:mencionad|indicad|especificad|citad)[oa](?: IN)?(?: ASKED)?",
            "(?:THIS )?não (?:(?:está|consta|aparece|se encontra)m? )?IN",
            "não se (?:sabe|diz|menciona|especifica|indica)(?: IN)?(?: ASKED)?",
            "(?:não há |não existem? |não tenho )(?:nenhuma |suficientes? )?(?:informaç(?:ão|ões)|menção|resposta|\
             dados)(?: suficientes?| disponíve(?:l|is))?(?: (?:sobre|a respeito|para responder|IN)(?: .*)?)?",
            "(?:nenhuma|sem) (?:informação|informações|menção|resposta)(?: (?:sobre|a respeito|IN)(?: .*)?)?",
            "(?:é |THIS é )?desconhecid[oa]",
            "(?:eu )?não sei",
            "(?:THIS )?não (?:é possível|posso|se pode|pode ser) (?:determinar|responder|saber|inferir|\
             determinad[oa]|respondid[oa])(?: (?:a |à )?(?:esta |essa )?pergunta| isso| ASKED)?(?: (?:com base|a \
             partir) (?:n|d)[oa]s? TEXT)?",
        ],
        beside: "desculpe|lamento|infelizmente|sinto muito|(?:segundo|de acordo com|conforme) TEXT",
        beyond: "(?:^| )(?:mas|porém|contudo|entretanto|embora|todavia|provavelmente|exceto)(?: |$)",
    },
    // Russian.
    Language {
        text: "(?:(?:эт|данн|предоставленн|приведенн|приведённ|указанн)\\S+ )*(?:текст|документ|отрыв|фрагмент|страниц|\
             контекст|разговор|стать|истори|рассказ|источник|материал)\\S*",
        within: "(?:в|во|из|по) TEXT",
        this: "(?:это|этого|об этом|эта информация|этой информации|ответа?|такой информации)",
        asked: "(?:кто|кого|кому|что|как\\S*|когда|где|куда|откуда|почему|зачем|сколько|чей|чья|чем) .*",
        refusals: &[
            "TEXT (?:это |этого |об этом )?не (?:упомина|указыва|говор|сообща|описыва|уточня|содерж|называ|\
             отвеча)\\S+(?: .*)?",
            "IN (?:THIS )?(?:прямо )?не (?:упомянут\\S*|указан\\S*|упоминается|упоминаются|сказано|описан\\S*|\
             уточняется|сообщается|говорится)(?: .*)?",
            "(?:.* )?не (?:упомянут\\S*|указан\\S*|упоминается|упоминаются|сказано|описан\\S*|уточняется|сообщается|\
             говорится) IN",
            "IN (?:THIS )?(?:ничего )?(?:нет|отсутству\\S+)(?: (?:\\S+ )?(?:информац|ответ|сведени|данн|упоминани|\
             указани)\\S*(?: .*)?)?",
            "(?:THIS )?(?:нет|не) IN",
            "(?:THIS )?не (?:указано|упоминается|упомянуто|сказано|известно|говорится|сообщается|уточняется)(?: \
             ASKED)?",
            "(?:THIS )?неизвестно(?: ASKED)?",
            "(?:нет|недостаточно) (?:информации|данных|сведений|ответа)(?: (?:об?|для ответа|IN)(?: .*)?)?",
            "(?:информация|ответ|сведения|данные) (?:отсутствует|отсутствуют|нет)(?: IN)?",
            "(?:я )?не знаю",
            "(?:я )?не (?:могу|удалось) (?:найти|определить|ответить|установить)(?: (?:это|ответ|ответа|на (?:этот \
             )?вопрос|информацию))?(?: IN)?",
            "(?:это )?(?:невозможно|нельзя) (?:определить|установить|ответить|узнать)(?: (?:это|на (?:этот \
             )?вопрос))?(?: IN| ASKED)?",
        ],
        beside: "к сожалению|извините|простите|(?:согласно|судя по) TEXT",
        beyond: "(?:^| )(?:но|однако|хотя|зато|вероятно|возможно|кроме)(?: |$)",
    },
    // Arabic.
    Language {
        text: "(?:(?:هذا|هذه) )?(?:ال)?(?:نص|نصوص|مستند|مستندات|وثيقة|وثائق|مقطع|مقاطع|صفحات|سياق|محادثة|مقال|مقالة|\
             قصة|مصدر|مصادر|فقرة)(?: (?:ال)?(?:مقدم|معطى|متاح|مرفق|مذكور)\\S*)?",
        within: "(?:في|من|ضمن) TEXT",
        this: "(?:هذا|ذلك|الإجابة|الجواب|(?:هذه )?المعلومة)",
        asked: "(?:من|ما|ماذا|متى|أين|كيف|لماذا|كم) .*",
        refusals: &[
            "(?:لا|لم) (?:يذكر|تذكر|يشر|تشر|يشير|تشير|يحدد|تحدد|يوضح|توضح|يتطرق|تتطرق|يحتوي|تحتوي|يحتو|تحتو|يبين|\
             تبين|يتضمن|تتضمن) TEXT(?: .*)?",
            "TEXT (?:لا|لم) (?:يذكر|تذكر|يشر|تشر|يشير|تشير|يحدد|تحدد|يوضح|توضح|يتطرق|تتطرق|يحتوي|تحتوي|يحتو|تحتو|\
             يبين|تبين|يتضمن|تتضمن)(?: .*)?",
            "(?:THIS )?غير (?:مذكور|محدد|معروف|متوفر)ة?(?: IN)?",
            "(?:.* )?(?:غير (?:مذكور|محدد|موجود|متوفر)ة?|ليست? (?:مذكور|محدد|موجود)\\S*|(?:لم|لا) (?:يذكر|تذكر|يرد|\
             ترد)(?: THIS)?|لم يتم ذكر\\S*(?: THIS)?) IN",
            "(?:THIS )?(?:لم|لا) (?:يذكر|تذكر|يحدد|تحدد)(?: THIS)?",
            "(?:THIS )?لم يتم (?:ذكر|تحديد)(?:ه|ها| THIS)(?: IN)?",
            "(?:THIS )?(?:ليست?|لا توجد|لا يوجد)(?: THIS)? IN",
            "(?:لا|لم) (?:توجد|يوجد|تتوفر|يتوفر) (?:أي |أية )?(?:معلومات|معلومة|إجابة|ذكر|إشارة)(?: كافية| \
             متاحة)?(?: (?:عن|حول|بشأن|للإجابة|IN)(?: .*)?)?",
            "لا (?:أعرف|أعلم)",
            "لا (?:يمكن|يمكنني|أستطيع) (?:تحديد|معرفة|الإجابة)(?: (?:THIS|عن (?:هذا )?السؤال|على (?:هذا \
             )?السؤال))?(?: IN)?",
        ],
        beside: "عذرا|آسف|للأسف|مع الأسف|(?:وفقا|طبقا) لل\\S+|حسب TEXT",
        beyond: "(?:^| )(?:لكن|ولكن|إلا|ربما|باستثناء|بل)(?: |$)",
    },
    // Chinese.
    Language {
        text: "(?:(?:这|该|本|所|提供的|给定的|给出的|上述)(?:些|段|篇|个)?)*(?:文本|文档|文件|文章|文|上下文|段落|资料|材料|对话|内容|故事|原文|来源)(?:中|里|内)?",
        within: "TEXT",
        this: "(?:这|这点|它|答案|该信息|相关信息)",
        asked: "(?:是谁|谁|什么|何时|哪里|为什么|如何).{0,15}",
        refusals: &[
            "(?:在|从|根据)?TEXT(?:并|都|均)?(?:没有|未|没|不)(?:有|曾|能|明确|具体|直接)*(?:提及|提到|说明|指出|提供|包含|记载|给出|描述|涉及|回答|交代).{0,20}",
            "(?:.{1,15})?(?:未|没有|没)在TEXT(?:被)?(?:提及|提到|说明|找到|出现)",
            "(?:THIS)?(?:并)?(?:未|没有)(?:被)?(?:明确|具体)*(?:提及|提到|说明|指出)",
            "(?:THIS)?(?:并)?不在TEXT",
            "(?:在)?TEXT(?:并)?(?:没有|无|缺乏)(?:任何|足够的?|相关的?|有关.{1,15}的|关于.{1,15}的)*(?:信息|答案|说明|记载|线索)?",
            "(?:没有|无|缺乏)(?:任何|足够的?|相关的?|关于.{1,15}的)*(?:信息|答案)",
            "我?(?:无法|不能)(?:从TEXT)?(?:确定|回答|得知|判断)(?:这个问题|该问题|此问题|答案|ASKED)?",
            "(?:THIS)?(?:未知|不详|不清楚)",
            "我?不知道(?:答案)?",
        ],
        beside: "抱歉|很抱歉|对不起|很遗憾|遗憾的是|(?:根据|按照)TEXT(?:的内容|的信息)?",
        beyond: "但|不过|然而|可能|虽然|而是|除了",
    },
];

#[cfg(test)]
mod tests {
    use super::super::is_refusal;

    /// Replies that state that there is no answer, by language.
    const REFUSALS: [(&str, &str); 8] = [
        (
            "Spanish",
            "No se menciona en los documentos.|No está en los documentos.|El texto no lo dice.|Lo siento, no hay \
             información sobre la boda en el texto.|No se especifica quién encendió la lámpara.|El documento no \
             contiene información sobre eso.|La fecha no se indica en el texto.|No especificado.|Desconocido.|No \
             lo sé.|No se puede determinar a partir del texto.|El nombre del perro no se menciona en la \
             conversación.",
        ),
        (
            "French",
            "Ce n'est pas mentionné dans les documents.|Le texte ne le dit pas.|Le texte ne précise pas qui a \
             allumé la lampe.|Non précisé.|Pas dans les documents.|Il n\u{2019}y a pas d\u{2019}information à ce \
             sujet dans le texte.|La date n'est pas indiquée dans le texte.|Les documents ne contiennent pas \
             cette information.|Je ne sais pas.|D'après le texte, cela n'est pas précisé.|Inconnu.",
        ),
        (
            "German",
            "Das steht nicht im Text.|Nicht in den Dokumenten.|Der Text sagt nicht, wer die Lampe angezündet \
             hat.|Das wird im Text nicht erwähnt.|Der Name des Hundes wird im Text nicht genannt.|Leider enthält \
             der Text keine Informationen dazu.|Dazu gibt es keine Informationen.|Nicht angegeben.|Unbekannt.|\
             Das weiß ich nicht.|Das geht aus dem Text nicht hervor.|Die Dokumente erwähnen das nicht.|Die Frage \
             kann nicht beantwortet werden.",
        ),
        (
            "Italian",
            "Non è menzionato nei documenti.|Il testo non lo dice.|Non è nei documenti.|Non specificato.|Non si \
             sa chi ha acceso la lampada.|Il testo non contiene informazioni sul matrimonio.|La data non è \
             indicata nel testo.|Non ci sono informazioni sufficienti.|Sconosciuto.|Mi dispiace, non lo so.|Non \
             è possibile rispondere alla domanda.",
        ),
        (
            "Portuguese",
            "Não é mencionado nos documentos.|Não está nos documentos.|O texto não diz.|Não especificado.|O \
             texto não menciona quem acendeu a lâmpada.|Não há informações suficientes no texto.|A data não é \
             indicada no texto.|Infelizmente, o documento não contém essa informação.|Desconhecido.|Não sei.|Não \
             é possível determinar com base no texto.",
        ),
        (
            "Chinese",
            "文中未提及。|不在文件中|文本中没有提到是谁点的灯。|文档中没有相关信息。|抱歉，无法确定。|答案不在文中。|根据文本，未提及。|没有足够的信息。|未知|我不知道。|该信息未在文中提及。",
        ),
        (
            "Russian",
            "В документах это не упоминается.|Не указано в документах.|В тексте об этом не говорится.|Текст не \
             сообщает, кто зажёг лампу.|Неизвестно.|К сожалению, в тексте нет информации о свадьбе.|Нет \
             информации.|Имя собаки не упоминается в тексте.|Этого нет в тексте.|Я не знаю.|Невозможно \
             определить.|В тексте не указано имя собаки.",
        ),
        (
            "Arabic",
            "غير مذكور في النص.|لم يُذكر ذلك في المستندات.|النص لا يذكر ذلك.|لا يحتوي النص على معلومات عن \
             الزفاف.|لا توجد معلومات كافية.|عذراً، لا أعرف.|ليس في المستندات.|غير معروف.|لا يمكن تحديد ذلك من \
             النص.|لم يذكر النص من أشعل المصباح.|الإجابة غير موجودة في النص.",
        ),
    ];

    /// Replies that answer, most of them with a negation.
    const ANSWERS: [(&str, &str); 8] = [
        (
            "Spanish",
            "En 1911.|No se menciona en los documentos, pero fue Tom.|No se menciona en los documentos: fue Tom.|\
             No está en la casa.|No.|Nadie.|El texto de la carta.|El texto no lo dice, fue Tom.|No se encuentra \
             en la casa.|Un desconocido lo hizo.|No mencionó a su hermano.|No hay respuesta de la policía.|El \
             tesoro no se encuentra en la historia.",
        ),
        (
            "French",
            "En 1911.|Ce n'est pas mentionné dans les documents, mais c'était Tom.|Il n'est pas dans la maison.|\
             Le texte ne le dit pas, c'était Tom.|Non.|Personne.|Un inconnu.|Pas dans la maison.|Il n'est pas \
             disponible.|Le texte de la lettre.|Elle ne dit pas un mot.",
        ),
        (
            "German",
            "Im Jahr 1911.|Das steht nicht im Text, aber es war Tom.|Er ist nicht im Haus.|Nein.|Niemand.|Der \
             Text sagt es nicht, es war Tom.|Ein Unbekannter.|Nicht im Haus.|Sie sagt nichts.|Der Text der \
             Urkunde.|Er weiß es nicht.|Keine Antwort kam.",
        ),
        (
            "Italian",
            "Nel 1911.|Non è menzionato nei documenti, ma era Tom.|Non è in casa.|No.|Nessuno.|Uno sconosciuto.|\
             Il testo non lo dice, era Tom.|Il testo della lettera.|Non lo disse.|Non c'è nessuno.|Non sa \
             nuotare.",
        ),
        (
            "Portuguese",
            "Em 1911.|Não é mencionado nos documentos, mas foi Tom.|Não está em casa.|Não.|Ninguém.|Um \
             desconhecido.|O texto não diz, foi Tom.|O texto da carta.|Não disse nada.|Ela não sabe nadar.|\
             Nenhuma resposta veio.",
        ),
        (
            "Chinese",
            "1911年。|文中未提及，但是是汤姆。|文中未提及，是汤姆。|不在家里。|没有人。|不|未知的男人|我不知道他。|她没有说话。|信中的文字。|文件在桌子上。",
        ),
        (
            "Russian",
            "В 1911 году.|В документах это не упоминается, но это был Том.|Его нет в доме.|Нет.|Никто.|\
             Неизвестный мужчина.|Текст письма.|Она не знает его.|Он ничего не сказал.|В тексте не указано, это \
             был Том.|Не в доме.|Он не говорил в рассказе.",
        ),
        (
            "Arabic",
            "في عام 1911.|غير مذكور في النص، لكنه توم.|ليس في المنزل.|لا.|لا أحد.|رجل غير معروف.|نص الرسالة.|لا \
             أعرفه.|لم يذكر أخاه.|لم يُذكر ذلك في المستندات، كان توم.|غير موجود.",
        ),
    ];

    #[test]
    fn replies_that_state_that_there_is_no_answer_are_refusals_in_eight_other_languages() {
        for (language, texts) in REFUSALS {
            texts.split('|').for_each(|text| assert!(is_refusal(text), "{language}: {text}"));
        }
    }

    #[test]
    fn replies_in_them_that_answer_are_no_refusals() {
        for (language, texts) in ANSWERS {
            texts.split('|').for_each(|text| assert!(!is_refusal(text), "{language}: {text}"));
        }
    }
}
