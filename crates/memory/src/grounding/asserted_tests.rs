//! Statements that a sentence holds without asserting them, beside those that it asserts.

use super::{Checks, Stating, Verdict, can_state, check, verify};

/// What the statements of `MINUTES` are checked against, one paragraph a line.
const MINUTES_TEXT: &str = "\
Ana proposed to move the servers to Oslo. Bo opposed it because the Oslo site has no backup generator. The team decided to stay in Bergen until 2028.\n\
The trial of the drug Velorin in 40 patients was stopped after three deaths. Dr. Kim, who is not a member of the board, denied that Velorin caused them.\n\
Acme bought Zenit for 5 million dollars in 2019. Zenit had been founded by Ida Holm in Malmo.\n\
Unlike Paul, Maria speaks Finnish. Only Maria has a key to the archive.\n\
The bridge was to be opened in May, but heavy rain delayed it until August.\n\
Tom said Lisa had stolen the ring; Lisa had not.\n\
If sales fall below 100, the shop in Kiel will be closed.\n\
The museum is closed on Mondays except in July. Dogs are allowed in the garden only.\n\
Peter's brother Hans married Olga in 1950; Peter never married.\n\
Almost 300 people attended. At most 20 of them were children.\n\
The committee rejected the proposal to ban bicycles.\n\
Before the war, Lena worked in Paris; after it, in Lyon.\n\
It is a myth that the tower was built by Romans.\n\
Neither Ann nor Bob passed, while Cleo did.\n\
Rent rose from 400 to 450 euros. Heating costs 60 euros.\n\
The king's daughter succeeded him. The last king, Otto, died in 1850.";

const MINUTES: &[(&str, bool)] = &[
    ("Bo proposed to move the servers to Oslo.", false),
    ("The team decided to move to Oslo.", false),
    ("The team decided to stay in Oslo until 2028.", false),
    ("The Oslo site has a backup generator.", false),
    ("Ana opposed moving the servers to Oslo.", false),
    ("Velorin caused three deaths.", false),
    ("Dr. Kim is a member of the board.", false),
    ("Dr. Kim said that Velorin caused the deaths.", false),
    ("Three patients were stopped after 40 deaths.", false),
    ("Zenit bought Acme for 5 million dollars in 2019.", false),
    ("Acme was founded by Ida Holm in Malmo.", false),
    ("Ida Holm bought Zenit for 5 million dollars.", false),
    ("Zenit was founded in 2019.", false),
    ("Paul speaks Finnish.", false),
    ("Paul has a key to the archive.", false),
    ("Maria does not speak Finnish.", false),
    ("The bridge was opened in May.", false),
    ("Lisa had stolen the ring.", false),
    ("Tom had stolen the ring.", false),
    ("The shop in Kiel will be closed.", false),
    ("The shop in Kiel was closed.", false),
    ("The museum is open on Mondays.", false),
    ("The museum is closed on Mondays in July.", false),
    ("Dogs are allowed in the museum.", false),
    ("Peter married Olga in 1950.", false),
    ("Hans never married.", false),
    ("Olga married Peter.", false),
    ("Exactly 300 people attended.", false),
    ("More than 300 people attended.", false),
    ("20 children attended.", false),
    ("The committee banned bicycles.", false),
    ("The committee accepted the proposal to ban bicycles.", false),
    ("Lena worked in Lyon before the war.", false),
    ("After the war, Lena worked in Paris.", false),
    ("The tower was built by Romans.", false),
    ("Ann passed.", false),
    ("Cleo did not pass.", false),
    ("Bob passed, while Cleo did not.", false),
    ("Rent is 400 euros.", false),
    ("Rent rose to 400 euros.", false),
    ("Rent rose by 450 euros.", false),
    ("Heating costs 450 euros.", false),
    ("Rent rose from 450 to 400 euros.", false),
    ("Otto was succeeded by his son.", false),
    ("The last king's daughter died in 1850.", false),
    ("Otto's daughter died in 1850.", false),
    ("Bo opposed it because the Oslo site has no backup generator.", true),
    ("Acme bought Zenit in 2019.", true),
    ("Zenit was founded by Ida Holm.", true),
    ("Maria speaks Finnish.", true),
    ("Hans married Olga in 1950.", true),
    ("The bridge was delayed until August.", true),
    ("Lena worked in Lyon after the war.", true),
    ("The last king, Otto, died in 1850.", true),
    ("Rent rose to 450 euros.", true),
];

/// A statement, a sentence, and whether the sentence states it.
const PAIRS: &[(&str, &str, bool)] = &[
    ("The earth is flat.", "Nobody believes that the earth is flat.", false),
    ("Moss had forged the letter.", "The judge rejected the claim that Moss had forged the letter.", false),
    ("Anna left the firm.", "The rumour that Anna left the firm is false.", false),
    ("The contract ends in June.", "Unless Rob pays, the contract ends in June.", false),
    ("Lena becomes director.", "Provided the board agrees, Lena becomes director.", false),
    ("The doors open automatically.", "In case of fire, the doors open automatically.", false),
    ("He had lost the key.", "Karl pretended that he had lost the key.", false),
    ("He had won the race.", "Karl dreamed that he had won the race.", false),
    ("Eva locked the door.", "Eva forgot to lock the door.", false),
    ("Eva repaired the pump.", "Eva failed to repair the pump.", false),
    ("Otto signed the treaty.", "Otto refused to sign the treaty.", false),
    ("The school was built in Ulm.", "The plan was to build the school in Ulm.", false),
    ("The meeting was on 3 May.", "The meeting scheduled for 3 May was cancelled.", false),
    ("Ben stole the car.", "It is not true that Ben stole the car.", false),
    ("Ben stole the car.", "Ben is accused of stealing the car.", false),
    ("The film cost 3 million euros.", "The film is said to have cost 3 million euros.", false),
    ("Julia flew to Rome.", "Instead of Rome, Julia flew to Madrid.", false),
    ("Julia flew to Rome.", "Julia flew to Madrid rather than to Rome.", false),
    ("The price was 500 euros.", "The price would have been 500 euros without the discount.", false),
    ("The train leaves at 8.", "The bus leaves at 8, the train at 9.", false),
    ("Marta was born in Ghent.", "Marta, whose mother was born in Ghent, lives in Bonn.", false),
    ("The mayor died in 1999.", "The wife of the mayor died in 1999.", false),
    ("Erik Lund wrote the opera.", "The son of Erik Lund wrote the opera.", false),
    ("Arno won.", "The company that sued Arno won.", false),
    ("Nils signed the letter.", "Everyone but Nils signed the letter.", false),
    ("Voters supported the tax.", "Hardly any voter supported the tax.", false),
    ("Many members voted for Stein.", "Few members voted for Stein.", false),
    ("The lake is 2 km deep.", "The lake is 30 metres deep and 2 km wide.", false),
    ("The tablets must be taken with milk.", "The tablets must not be taken with milk.", false),
    ("The tablets must be taken with milk.", "The tablets need not be taken with milk.", false),
    ("Iris was the first woman to climb the peak.", "Iris was the second woman to climb the peak.", false),
    ("Finn sold the house to Greta.", "The house was sold by Greta to Finn.", false),
    ("Finn lent Greta 50 euros.", "Greta lent Finn 50 euros.", false),
    ("The war had ended after the treaty was signed.", "The treaty was signed after the war had ended.", false),
    ("Sven hated sailing.", "Sven sold his boat because his wife hated sailing.", false),
    ("Three engines failed.", "Two of the three engines failed.", false),
    ("The population fell to 10 percent.", "The population fell by 10 percent to 900.", false),
    ("Petra works for Siem.", "Lukas works for Siem, Petra for Bosk.", false),
    ("The museum closes at 10.", "The museum opens at 10 and closes at 17.", false),
    ("The factory in Graz was closed.", "Contrary to reports, the factory in Graz was not closed.", false),
    ("The factory in Graz was closed.", "Reports that the factory in Graz was closed were wrong.", false),
    ("The bank had lost the money.", "Clara wondered whether the bank had lost the money.", false),
    ("She had taken the money.", "Clara was asked if she had taken the money.", false),
    (
        "The knife belonged to Rolf.",
        "According to the defence, the knife belonged to Rolf; the court found that it did not.",
        false,
    ),
    ("Mozart was born in Augsburg.", "Mozart's father Leopold was born in Augsburg.", false),
    ("The embassy in Paris employs 40 Germans.", "The German embassy in Paris employs 40 people.", false),
    ("The vaccine was tested on humans.", "The vaccine was tested on mice but not on humans.", false),
    (
        "The office has been in Kiel since 2010.",
        "Until 2010 the office was in Kiel; since then it has been in Lund.",
        false,
    ),
    ("Hana led the clinic until 2001.", "From 2001 to 2005 Hana led the clinic.", false),
    ("The storm killed 80 people.", "The storm killed 12 people and injured 80.", false),
    ("The village was flooded.", "Had the dam broken, the village would have been flooded.", false),
    ("Dora drowned in the river.", "Dora nearly drowned in the river.", false),
    ("The hostages were freed.", "The attempt to free the hostages failed.", false),
    ("Klein was ordered to pay 900 euros.", "The court ordered Bauer to pay 900 euros to Klein.", false),
    ("Kurt arrived after Maria had left.", "Only after Kurt had left did Maria arrive.", false),
    ("Ellen wants to leave.", "The board wants Ellen to leave.", false),
    ("Paul is older than Jan.", "Paul is older than Tim but younger than Jan.", false),
    ("The samples contained lead.", "None of the samples contained lead.", false),
    ("The samples contained lead.", "The samples contained no lead, only zinc.", false),
    ("With Anton's help, the team won the cup.", "Without Anton's help, the team won the cup.", false),
];

/// Pairs in constructions of other words than those above.
const MORE: &[(&str, &str, bool)] = &[
    ("The port of Brem was closed.", "The minister announced a plan to close the port of Brem.", false),
    ("The dam failed.", "Officials warned that the dam could fail.", false),
    ("Otto had fled to Spain.", "It was widely believed that Otto had fled to Spain.", false),
    ("Otto had fled to Spain.", "It was believed in Rome that Otto had fled to Spain.", false),
    ("The king had died.", "There were rumours that the king had died.", false),
    ("Ray set fire to the barn.", "The prosecutor alleged that Ray set fire to the barn.", false),
    ("Max took the ring.", "Nora suspected Max of taking the ring.", false),
    ("Paul Stern founded the clinic.", "The mother of Paul Stern founded the clinic.", false),
    ("The queen ruled Malta.", "The sister of the queen ruled Malta.", false),
    ("Ada built the mill.", "Her uncle built the mill, and Ada painted it.", false),
    ("Lee escaped.", "The man who shot Lee escaped.", false),
    ("The man escaped.", "The man who shot Lee escaped.", true),
    ("Ida voted for the plan.", "All members except Ida voted for the plan.", false),
    ("The army will attack.", "Should the talks fail, the army will attack.", false),
    ("The mayor resigned in vain.", "If the vote fails, the mayor resigned in vain.", false),
    ("The concert was on Friday.", "The concert planned for Friday was moved to Sunday.", false),
    ("The bank lost the files.", "The bank denied having lost the files.", false),
    ("Ellen visited Chile.", "Ellen hopes to visit Chile.", false),
    ("Anna kills the count.", "In the novel, Anna kills the count.", true),
    ("Bruno died in Lyon.", "Some historians claim Bruno died in Lyon.", false),
    ("The castle was built in 1210.", "Some historians think the castle was built in 1210.", false),
    ("The castle was built in 1210.", "The castle was supposedly built in 1210.", false),
    ("The price is 30 euros.", "The price fell from 30 to 20 euros.", false),
    ("The price fell to 20 euros.", "The price fell from 30 to 20 euros.", true),
    (
        "The firm was in Trier since 1990.",
        "Since 1990 the firm has had its seat in Bonn; before that it was in Trier.",
        false,
    ),
    ("Her mother died before Eva moved to Oslo.", "Eva moved to Oslo before her mother died.", false),
    ("The city council approved the budget.", "The city council approved the budget in May.", true),
    ("The council approved the budget in May.", "The city council approved the budget in May.", true),
    ("The drug was safe.", "Researchers showed that the drug was safe.", true),
    ("Moss had forged the letter.", "The court found that Moss had forged the letter.", true),
    ("Bob had died.", "Ann learned that Bob had died.", true),
    ("The match was moved to Kiel.", "Because of the rain, the match was moved to Kiel.", true),
    ("The book was banned.", "The book, which was published in 1980, was banned.", true),
    ("The book was published in 1980.", "The book, which was published in 1980, was banned.", true),
    ("The University of Graz was founded in 1585.", "The University of Graz was founded in 1585.", true),
    ("Members of the crew were saved.", "Members of the crew of the Aurora were saved.", true),
    ("Lima was founded in 1535.", "The capital of Peru, Lima, was founded in 1535.", true),
    ("The mayor opened the bridge in 1990.", "The mayor of Pell opened the bridge in 1990.", true),
    ("Ida Moos resigned in June.", "The head of the bank, Ida Moos, resigned in June.", true),
    ("The bridge was built by Sato.", "The bridge was designed by Ito and built by Sato.", true),
    ("Ito designed the bridge.", "The bridge was designed by Ito and built by Sato.", true),
    ("His father owned a shop.", "He was born in Ulm, where his father owned a shop.", true),
    ("Tim's company sold 300 boats.", "Tim's company sold 300 boats.", true),
    ("The school reopened in Graz.", "After the war had ended, the school reopened in Graz.", true),
    ("Shops must close at 8.", "The law says that shops must close at 8.", false),
    ("The results confirmed the theory.", "The results were published in 2004 and confirmed the theory.", true),
    ("The pump had failed.", "The board was told that the pump had failed.", false),
    ("Rolf drove the car.", "The police said Rolf drove the car.", false),
    ("Rolf drove the car.", "Rolf drove the car, the police said.", false),
    ("The castle was built in 1210.", "The castle, some say, was built in 1210.", false),
    ("The castle was built in 1210.", "The castle, it is said, was built in 1210.", false),
    ("The castle was built in 1210.", "The castle, supposedly, was built in 1210.", false),
    ("Ann moved to Rome in 1990.", "Ann, the latest suspect, moved to Rome in 1990.", true),
    ("Ann won the race.", "Ann or Bob won the race.", false),
    ("Ann or Bob won the race.", "Ann or Bob won the race.", true),
    ("The members resigned.", "Few of the members resigned in June.", false),
    ("Two members resigned.", "Two of the members resigned in June.", true),
    ("The team stayed in Bergen.", "The team decided to stay in Bergen.", false),
    ("The firm sold cars in Spain.", "The firm planned selling cars in Spain.", false),
    ("Ann sold the house.", "The court stopped Ann from selling the house.", false),
    ("Ann sold the house.", "Ann was too tired to sell the house.", false),
    ("Ann praised Tom.", "In her report during the war Ann praised Tom.", true),
    ("Ann paid the fine.", "Ann avoided paying the fine.", false),
    ("The king died in 1850.", "The king seems to have died in 1850.", false),
    ("Ann visited Rome.", "Ann is looking forward to visiting Rome.", false),
    ("Tom had won the race.", "Karl acted as though Tom had won the race.", false),
    ("Eva moved to Oslo.", "Eva moved to Oslo before her mother died.", true),
    ("Bob sold the house.", "Bob sold the house he had built in Rome.", true),
    ("The claim was confirmed.", "The claim that the drug works was confirmed.", true),
    ("The sun turns around the earth.", "The idea that the sun turns around the earth was abandoned.", false),
    ("30 miners died.", "It is feared that 30 miners died.", false),
    ("The lock was broken.", "The inspector noticed that the lock was broken.", true),
    ("The hall will be sold.", "Under the plan, the hall will be sold.", true),
    ("Ida Holm inherited the farm.", "The children of Ida Holm inherited the farm.", false),
    ("The king was killed in the war.", "Two sons of the king were killed in the war.", false),
    ("The church was repaired in 1950.", "The roof of the church was repaired in 1950.", false),
    ("The king visited Lima.", "The king of Spain visited Lima in 1920.", true),
    ("Students occupied the hall.", "A group of students occupied the hall.", true),
    ("Workers left the city.", "Thousands of workers left the city.", true),
    ("The firm was sold.", "The firm, whose founder died in 1990, was sold.", true),
    ("The firm died in 1990.", "The firm, whose founder died in 1990, was sold.", false),
    ("Ann died in Rome.", "Ann, who wrote the song, died in Rome.", true),
    ("Ann wrote the song.", "Ann, who wrote the song, died in Rome.", true),
    ("Ann won a prize.", "The song that Ann wrote won a prize.", false),
    ("The song was banned.", "The song that Ann recorded was banned.", true),
    ("Ann opened the shop in 1960.", "Bob and Ann opened the shop in 1960.", true),
    ("The price rose to 12 euros in 2020.", "The price rose from 10 to 12 euros in 2020.", true),
    ("The office moved to Lund in 2001.", "The office moved from Kiel to Lund in 2001.", true),
    ("Hana led the clinic from 2001 to 2005.", "Hana led the clinic from 2001 to 2005.", true),
    ("The shop was closed in 2000.", "The shop was opened in 1990 and closed in 2000.", true),
    ("She has lived in Oslo since 1990.", "She has lived in Oslo since 1990.", true),
    ("The bridge was closed until May.", "The bridge was closed until May because the river had flooded.", true),
    ("The hall was closed after the fire.", "The hall was closed after the fire.", true),
    ("The school was moved to Pell.", "After the fire, the hall was closed and the school was moved to Pell.", true),
    (
        "The results were published on 5 May.",
        "The vote was held on 3 May, and the results were published on 5 May.",
        true,
    ),
    ("The workers left.", "The workers were offered 300 euros to leave.", false),
    ("The army took the fort.", "The army tried to take the fort but failed.", false),
    ("Otto left the firm in 2010.", "Otto intended to leave the firm in 2010.", false),
    ("The museum was opened in 1970.", "The museum, designed by Ito, was opened in 1970.", true),
    ("Ito designed the museum.", "The museum, designed by Ito, was opened in 1970.", true),
    ("Spain left Malta.", "The treaty required Spain to leave Malta.", false),
    ("Nora was born in Ghent.", "Nora was born in Ghent, the daughter of a baker.", true),
    ("The mayor will visit the harbour.", "The mayor will visit the harbour, if the storm ends in time.", false),
    ("The mayor visited the harbour.", "The mayor visited the harbour, if I remember.", true),
    ("The police may use force.", "The police may use force, if necessary.", true),
    ("The lamp must be replaced after 700 hours.", "The vendor recommends replacing the lamp after 700 hours.", false),
    ("Elsa was the best engineer of her time.", "Solberg considers Elsa the best engineer of her time.", false),
    ("Solberg considered Elsa the best engineer.", "Solberg considered Elsa the best engineer of her time.", true),
    ("The old bridge near Brem is safe.", "The old bridge near Brem is regarded as safe.", false),
    ("Prices for hay were terribly low.", "Prices for hay were 12 euros, which Kurt called terribly low.", false),
    ("The bill was adopted in May.", "The bill, which some considered urgent, was adopted in May.", true),
    ("Guests may swim in the lake for free.", "Guests get a map for free; only members may swim in the lake.", false),
    (
        "Guests may log in for six months.",
        "Guests get an account for six months, and only members of staff may log in.",
        false,
    ),
    ("Members may swim in the lake.", "Guests get a map for free; only members may swim in the lake.", true),
    ("Guests received a map for free.", "Guests received a map for free; only members may swim in the lake.", true),
];

/// Sentences that do not state "Jim sold his watch.", and support themselves.
const OPEN: &[&str] = &[
    "If Jim had sold his watch, he would be rich.",
    "Jim wanted to sell his watch.",
    "Ann asked whether Jim sold his watch.",
    "Ann claimed that Jim sold his watch.",
    "Ann denied that Jim sold his watch.",
    "Jim was said to have sold his watch.",
    "Jim is expected to sell his watch.",
    "Jim is rumoured to have sold his watch.",
    "Jim tried to sell his watch.",
    "Jim was going to sell his watch.",
    "Unless Jim sold his watch, he is poor.",
    "Jim was about to sell his watch.",
];

/// The same of statements that are true in constructions like those above.
const TRUE: &[(&str, &str)] = &[
    (
        "Bo opposed it because the Oslo site has no backup generator.",
        "Bo opposed it because the Oslo site has no backup generator.",
    ),
    (
        "The judge rejected the claim that Moss had forged the letter.",
        "The judge rejected the claim that Moss had forged the letter.",
    ),
    ("The judge rejected the claim.", "The judge rejected the claim that Moss had forged the letter."),
    ("The pump was broken.", "The test confirmed that the pump was broken."),
    ("The letter was a forgery.", "Experts discovered that the letter was a forgery."),
    ("The bank had lost the money.", "Clara knew that the bank had lost the money."),
    ("The water was dirty.", "The study proved that the water was dirty."),
    ("Anna left the firm.", "Because the pay was low, Anna left the firm."),
    ("Anna left the firm.", "Although Bob stayed, Anna left the firm in 1998."),
    ("The council closed the school.", "When the roof fell in, the council closed the school."),
    ("Otto died in 1850.", "The last king was Otto, and Otto died in 1850."),
    ("Hans Holm wrote the opera.", "Hans Holm, a son of Erik Lund, wrote the opera."),
    ("The son of Erik Lund wrote the opera.", "The son of Erik Lund wrote the opera."),
    ("The company won.", "The company that sued Arno won."),
    ("The company attacked Arno.", "The company that attacked Arno won."),
    ("The wife of the mayor died.", "The wife of the mayor died in 1999."),
    ("The house was sold by Greta.", "The house was sold by Greta to Finn."),
    ("Finn was born in Kiel.", "Finn was born in Kiel and works in Lund."),
    ("The storm killed 12 people.", "The storm killed 12 people and injured 80."),
    ("The storm injured 80 people.", "The storm killed 12 people and injured 80."),
    ("The meeting was cancelled.", "The meeting scheduled for 3 May was cancelled."),
    (
        "Heavy rain delayed the bridge until August.",
        "The bridge was to be opened in May, but heavy rain delayed the bridge until August.",
    ),
    ("Everyone signed the letter.", "Everyone in the room signed the letter."),
    ("Leopold was born in Augsburg.", "Mozart's father Leopold was born in Augsburg."),
    ("Mozart's father was born in Augsburg.", "Mozart's father Leopold was born in Augsburg."),
    ("Marta moved to Bonn.", "Marta, whose mother was born in Ghent, moved to Bonn."),
    ("The war had ended.", "The treaty was signed because the war had ended."),
    ("The treaty was signed after the war had ended.", "The treaty was signed after the war had ended."),
    ("Lena worked in Paris before the war.", "Before the war, Lena worked in Paris; after it, in Lyon."),
    ("The office was in Kiel until 2010.", "Until 2010 the office was in Kiel; since then it has been in Lund."),
    ("Bauer was ordered to pay 900 euros.", "The court ordered Bauer to pay 900 euros to Klein."),
    ("The court ordered Bauer to pay 900 euros.", "The court ordered Bauer to pay 900 euros to Klein."),
    ("Hana led the clinic from 2001 to 2005.", "From 2001 to 2005 Hana led the clinic."),
    ("Cleo moved to Rome.", "Neither Ann nor Bob stayed, and Cleo moved to Rome."),
    ("The board approved the plan to build a school.", "The board approved the plan to build a school in Ulm."),
    ("Sven sold his boat.", "Sven sold his boat because his wife hated sailing."),
    ("The city of Bern was founded in 1191.", "The city of Bern was founded in 1191."),
    ("Bern was founded in 1191.", "The city of Bern was founded in 1191."),
    ("The court found that the knife belonged to Rolf.", "The court found that the knife belonged to Rolf."),
    ("Julia flew to Madrid.", "Instead of Rome, Julia flew to Madrid."),
    ("Maria speaks Finnish.", "Unlike Paul, Maria speaks Finnish."),
    ("Rent rose to 450 euros.", "The rent rose from 400 to 450 euros."),
    ("Ann claimed that Bob stole the car.", "Ann claimed that Bob stole the car."),
    ("The shop in Kiel will be closed if sales fall.", "If sales fall, the shop in Kiel will be closed."),
];

/// A question, a short answer, a sentence that holds the answer, and whether it states it.
const SHORT: &[(&str, &str, &str, bool)] = &[
    ("Who wrote the opera?", "Erik Lund", "The son of Erik Lund wrote the opera.", false),
    ("Who wrote the opera?", "The son of Erik Lund", "The son of Erik Lund wrote the opera.", true),
    ("Who wrote the opera?", "Erik Lund", "Erik Lund wrote the opera.", true),
    ("Where was Marta born?", "Ghent", "Marta, whose mother was born in Ghent, lives in Bonn.", false),
    ("Where does Marta live?", "Bonn", "Marta, whose mother was born in Ghent, lives in Bonn.", true),
    ("Where was the school built?", "Ulm", "The plan was to build the school in Ulm.", false),
    ("Where was the school built?", "Ulm", "The school was built in Ulm.", true),
    ("When was the meeting?", "3 May", "The meeting scheduled for 3 May was cancelled.", false),
    (
        "Who does the knife belong to?",
        "Rolf",
        "According to the defence, the knife belonged to Rolf; the court found that it did not.",
        false,
    ),
    ("Who stole the car?", "Ben", "Ben is accused of stealing the car.", false),
    ("Who stole the car?", "Ben", "It was proved that Ben stole the car.", true),
    ("Who died in 1999?", "The mayor", "The wife of the mayor died in 1999.", false),
    ("Who won the race?", "Karl", "Karl dreamed that he had won the race.", false),
    ("Where was Mozart born?", "Augsburg", "Mozart's father Leopold was born in Augsburg.", false),
    ("Where was Leopold born?", "Augsburg", "Mozart's father Leopold was born in Augsburg.", true),
    ("When did the shop close?", "1999", "If sales had fallen, the shop would have closed in 1999.", false),
    ("Who signed the letter?", "Nils", "Everyone but Nils signed the letter.", false),
    (
        "When did the council close the school?",
        "1990",
        "The council confirmed that it closed the school in 1990.",
        true,
    ),
    ("Who forged the letter?", "Moss", "The judge rejected the claim that Moss had forged the letter.", false),
    ("Who founded the clinic?", "Ida Holm", "The clinic in Malmo was founded by Ida Holm in 1950.", true),
    ("Who founded the clinic?", "1950", "The clinic in Malmo was founded in 1950 by Ida Holm.", false),
    ("Who won the race?", "Ann", "Ann or Bob won the race.", false),
    ("What did Ann buy?", "Rome", "Ann bought a ring in Rome.", false),
    ("What did Ann buy?", "a ring", "Ann bought a ring in Rome.", true),
];

fn failed<'a>(rows: impl Iterator<Item = (String, bool, bool)> + 'a) -> Vec<String> {
    let wrong = rows.filter(|(_, found, wanted)| found != wanted);
    wrong.map(|(row, found, _)| format!("{}: {row}", if found { "supported" } else { "not supported" })).collect()
}

fn supports(question: &str, statement: &str, text: &str) -> bool {
    let checked = check(question, statement, &[text], Checks::default());
    !checked.is_empty() && checked.iter().all(|checked| matches!(checked.verdict, Verdict::Supported(_)))
}

#[test]
fn a_sentence_supports_only_what_it_asserts() {
    let asked = "What does the text say?";
    let all =
        PAIRS.iter().chain(MORE).copied().chain(TRUE.iter().map(|(statement, sentence)| (*statement, *sentence, true)));
    let rows = all.map(|(statement, sentence, wanted)| {
        (format!("{statement} | {sentence}"), supports(asked, statement, sentence), wanted)
    });
    let failed = failed(rows);
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_a_sentence_only_reports_or_intends_is_open() {
    let claim = "Jim sold his watch.";
    let supports = |claim: &str, text: &str| matches!(verify(claim, &[text], Checks::default()), Verdict::Supported(_));
    let rows = OPEN.iter().flat_map(|open| {
        let row = |claim: &str, wanted| (format!("{claim} | {open}"), supports(claim, open), wanted);
        [row(claim, false), row(open, true)]
    });
    let failed = failed(rows);
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn sentences_of_one_text_support_only_what_they_assert() {
    let rows = MINUTES.iter().map(|(statement, wanted)| {
        ((*statement).to_owned(), supports("What do the minutes say?", statement, MINUTES_TEXT), *wanted)
    });
    let failed = failed(rows);
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_short_answer_is_stated_only_where_it_is_asserted() {
    let rows = SHORT.iter().flat_map(|(question, answer, sentence, wanted)| {
        let start = sentence.find(answer).or_else(|| sentence.to_lowercase().find(&answer.to_lowercase())).unwrap();
        let at = start..start + answer.len();
        let stating = Stating { text: sentence, heading: "", quote: 0..sentence.len(), answer: at };
        let row = format!("{question} {answer} | {sentence}");
        [
            (format!("read: {row}"), can_state(question, &stating), *wanted),
            (format!("checked: {row}"), supports(question, answer, sentence), *wanted),
        ]
    });
    let failed = failed(rows);
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_judge_is_asked_about_words_that_are_no_whole_main_clause() {
    let no = |_: &str, _: &str| Some(false);
    let accepts = |claim: &str, text: &str| {
        let checks = Checks { judge: Some(&no), ..Checks::default() };
        matches!(verify(claim, &[text], checks), Verdict::Supported(_))
    };
    for (claim, text) in [
        ("Jim sold his watch.", "Jim sold his watch."),
        ("Jim sold his watch.", "In 1905, Jim sold his watch."),
        ("Jim sold his watch.", "Ann left Rome; Jim sold his watch."),
        ("Jim sold his watch.", "Ann left Rome, and Jim sold his watch."),
    ] {
        assert!(accepts(claim, text), "{claim} | {text}");
    }
    for (claim, text) in [
        ("Jim sold his watch.", "Jim sold his watch to Ann."),
        ("Jim sold his watch.", "Ann knew that Jim sold his watch."),
        ("Jim sold his watch.", "Ann left when Jim sold his watch."),
    ] {
        assert!(!accepts(claim, text), "{claim} | {text}");
    }
}
