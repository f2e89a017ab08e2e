//! Closed lists of English words that tell what a noun or a name means, in lower case.

use super::words::is_among;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    Person,
    Thing,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gender {
    Male,
    Female,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    One,
    Several,
    /// A group, such as a team: "it" or "they".
    Either,
}

pub(super) fn is_plural(lower: &str) -> bool {
    let is_regular =
        lower.len() > 3 && lower.ends_with('s') && !["ss", "us", "is"].iter().any(|end| lower.ends_with(end));
    is_regular && lower != "series" || is_among(lower, "people men women children police")
}

pub(super) fn number(noun: &str) -> Number {
    match () {
        () if is_among(noun, SINGULAR_OR_PLURAL) => Number::Either,
        () if is_plural(noun) => Number::Several,
        () if is_among(noun, GROUPS) => Number::Either,
        () => Number::One,
    }
}

pub(super) fn gender(lower: &str) -> Option<Gender> {
    match () {
        () if is_among(lower, FEMALE) => Some(Gender::Female),
        () if is_among(lower, MALE) => Some(Gender::Male),
        () => None,
    }
}

/// An adjective of a people or a faith.
pub(super) fn is_adjective(lower: &str) -> bool {
    ["ish", "ese", "ian", "ean", "ican"].iter().any(|end| lower.ends_with(end)) || is_among(lower, ADJECTIVES)
}

/// Whether a word can be a verb behind its subject: "the bridge built".
pub(super) fn is_verb_form(lower: &str) -> bool {
    lower.len() > 4 && lower.ends_with("ed") || is_among(lower, PARTICIPLES)
}

/// Words inside of names, in lower case.
pub(super) const IN_NAMES: &str = "of de von van da la le du del der den bin ibn al";

pub(super) const CALENDAR: &str = "january february march april june july august september october november december monday tuesday \
wednesday thursday friday saturday sunday christmas easter";

/// Nouns of phrases that name no thing of their own: "the name of", "the year".
pub(super) const ABSTRACT: &str = "name names number year years date time day days type kind part amount reason purpose way term word \
percentage result same first last end start beginning case fact population reputation nationality height length width weight \
size distance speed temperature cost price area depth age";

const SINGULAR_OR_PLURAL: &str = "states nations netherlands philippines emirates times games";

const GROUPS: &str = "team band group crew family company army party club staff committee government";

pub(super) const KIN: &str = "wife husband mother father son daughter brother sister child children spouse parents uncle aunt \
grandson granddaughter grandfather grandmother";

pub(super) const PERSONS: &str = "person man woman boy girl child actor actress author writer singer musician artist painter player \
president king queen emperor empress leader scientist physicist chemist mathematician director producer composer engineer \
general governor inventor explorer philosopher poet coach founder architect keeper teacher doctor nurse lawyer judge soldier \
officer captain priest bishop pope pastor merchant farmer driver minister senator mayor chancellor prince princess duke \
duchess wife husband mother father son daughter brother sister uncle aunt friend student professor manager chief boss lady \
gentleman quarterback character";

const FEMALE: &str = "woman girl wife mother daughter sister queen princess duchess empress actress aunt grandmother granddaughter \
stepmother widow niece lady heroine goddess mrs ms miss";

const MALE: &str = "man boy husband father son brother king prince duke emperor uncle grandfather grandson \
stepfather nephew gentleman mr sir \
lord pope";

pub(super) const TITLES: &str = "mr mrs ms miss dr sir lady lord king queen prince princess president pope saint st emperor empress \
captain judge duke duchess professor prof senator bishop";

const ADJECTIVES: &str =
    "french german dutch greek roman swiss islamic catholic protestant jewish czech thai welsh norman iraqi israeli";

const PARTICIPLES: &str = "built made sold bought held found won lost taken written known given seen led born drawn sung told \
kept left lit used spent sent paid set put cut";

/// Words of names that no person has.
pub(super) const THINGS: &str = "university college school institute academy company corporation inc ltd limited group bank museum \
gallery library theatre theater cinema hall house palace castle tower bridge cathedral church abbey temple mosque monastery \
hospital airport station stadium park garden gardens square street road avenue boulevard river lake sea ocean mountain \
mountains island islands bay valley gorge desert forest rainforest basin coast city town village county district province \
state states kingdom empire republic union parliament congress senate council committee commission court ministry department \
office agency party army navy war battle treaty act directive convention constitution agreement treaty revolution movement \
festival championship cup bowl league club team series prize award project program programme mission society association \
organization organisation federation foundation fort market exchange bible book channel network digital engine railway line";
