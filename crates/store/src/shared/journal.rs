//! The tables of shared corpora in PostgreSQL: the sequence of changes of each corpus, and for each row the last change
//! that it was part of.
//!
//! A change has a number and a digest of itself and all changes before it, so that a copy with a diverged history is
//! detected. It does not keep its rows: `memlocal_row` has every row once, in its current state, or only its key if the
//! row was deleted. A client that has the changes up to some number fetches the rows of later ones; a removed text is
//! stored nowhere.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use postgres::error::SqlState;
use postgres::{Client, IsolationLevel, Transaction};

use crate::counts::counts_of;
use crate::database::Database;
use crate::shared::copy::{self, Copy, Intake, RowChange};
use crate::shared::hold::{Hold, SharedName};
use crate::shared::session::{Answer, MAKING_TABLES, Session, words};
use crate::version::VERSION;
use crate::{CorpusName, Counts, Digest, Error, Result};

/// Longer rows are split into pieces of this size.
const PIECE_BYTES: usize = 64 << 10;
/// Approximate size of one batch.
const BATCH_BYTES: usize = 4 << 20;
/// Number of pieces fetched at once.
const FETCHED: i32 = 500;
/// Batches queued between sender and receiver.
const WAITING: usize = 2;

/// `schema` is the version of the tables in schema.rs, whose rows these are; a null row was deleted. When a corpus is
/// removed, its name can be reused, but its id is kept, so that copies elsewhere detect the removal.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS memlocal_corpus (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    space text NOT NULL,
    name text NOT NULL,
    schema bigint NOT NULL,
    removed boolean NOT NULL DEFAULT false,
    documents bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    pending bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX IF NOT EXISTS memlocal_corpus_name ON memlocal_corpus (space, name) WHERE NOT removed;
CREATE TABLE IF NOT EXISTS memlocal_change (
    corpus bigint REFERENCES memlocal_corpus,
    version bigint,
    digest bytea NOT NULL,
    PRIMARY KEY (corpus, version)
);
CREATE TABLE IF NOT EXISTS memlocal_row (
    corpus bigint REFERENCES memlocal_corpus,
    tab text,
    key bytea,
    piece integer,
    version bigint NOT NULL,
    row bytea,
    PRIMARY KEY (corpus, tab, key, piece)
);
CREATE INDEX IF NOT EXISTS memlocal_row_version ON memlocal_row (corpus, version);
";

/// The state of a corpus in PostgreSQL, with the digests to compare with a copy, if there is one.
#[derive(Debug)]
pub(crate) struct Head {
    pub number: i64,
    pub id: String,
    pub schema: i64,
    pub version: i64,
    /// The digest of the copy's last change, if the corpus has that change.
    pub of_copy: Option<Digest>,
    /// The digest of the change after it.
    pub of_next: Option<Digest>,
}

/// One entry of the list of corpora.
pub(crate) struct Entry {
    pub name: CorpusName,
    pub counts: Counts,
}

type Outcome<T> = std::result::Result<T, postgres::Error>;

/// The state of the corpus of a name, if it exists.
pub(crate) fn head(session: &Session, name: &SharedName, copy: Option<&Copy>) -> Result<Option<Head>> {
    let head = "
        SELECT number, id, schema, newest.version, of_copy.digest, of_next.digest
        FROM memlocal_corpus
        CROSS JOIN LATERAL
            (SELECT version FROM memlocal_change WHERE corpus = number ORDER BY version DESC LIMIT 1) AS newest
        LEFT JOIN memlocal_change AS of_copy ON of_copy.corpus = number AND of_copy.version = $3
        LEFT JOIN memlocal_change AS of_next ON of_next.corpus = number AND of_next.version = $3 + 1
        WHERE space = $1 AND name = $2 AND NOT removed";
    let (space, name) = (name.space.clone(), name.name.to_string());
    let version = copy.map_or(-1, |copy| copy.version);
    session.run(move |client| {
        let found = if_tables(client.query_opt(head, &[&space, &name, &version]))?.flatten();
        Ok(found.map(|row| Head {
            number: row.get(0),
            id: row.get(1),
            schema: row.get(2),
            version: row.get(3),
            of_copy: digest(row.get(4)),
            of_next: digest(row.get(5)),
        }))
    })
}

/// Whether a corpus existed and was removed.
pub(crate) fn was_removed(session: &Session, id: &str) -> Result<bool> {
    let (removed, id) = ("SELECT 1 FROM memlocal_corpus WHERE id = $1 AND removed", id.to_owned());
    session.run(move |client| Ok(if_tables(client.query_opt(removed, &[&id]))?.flatten().is_some()))
}

/// The corpora of a space, by name.
pub(crate) fn list(session: &Session, space: &str) -> Result<Vec<Entry>> {
    let corpora = "SELECT name, documents, passages, pending FROM memlocal_corpus
        WHERE space = $1 AND NOT removed ORDER BY name";
    let space = space.to_owned();
    let rows = session.run(move |client| Ok(if_tables(client.query(corpora, &[&space]))?.unwrap_or_default()))?;
    let count = |number: i64| number.cast_unsigned();
    let entry = |row: &postgres::Row| {
        let counts = Counts { documents: count(row.get(1)), passages: count(row.get(2)), pending: count(row.get(3)) };
        Ok(Entry { name: row.get::<_, &str>(0).parse()?, counts })
    };
    rows.iter().map(entry).collect()
}

/// A new unique corpus id.
pub(crate) fn new_id(session: &Session) -> Result<String> {
    session.run(|client| Ok(client.query_one("SELECT gen_random_uuid()::text", &[])?.get(0)))
}

/// `None` if the tables have not been created yet.
fn if_tables<T>(result: Outcome<T>) -> Outcome<Option<T>> {
    match result {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        result => result.map(Some),
    }
}

fn digest(bytes: Option<Vec<u8>>) -> Option<Digest> {
    bytes.and_then(|bytes| bytes.try_into().ok()).map(Digest)
}

/// Sends the changed rows of a copy as one change, which is committed for all clients when this returns. The copy's own
/// transaction is committed afterwards; a process stopped in between finds its change in PostgreSQL.
///
/// # Errors
/// [`Error::Overtaken`] if the copy lacks changes of the corpus; [`Error::Postgres`].
pub(crate) fn send(hold: &Hold, database: &Database) -> Result<()> {
    let Some(copy) = Copy::of(database)? else { return Err(database.damaged("it is no copy any more")) };
    let counts = if copy.version == 0 || copy::counts_change(database)? { Some(counts_of(database)?) } else { None };
    let (messages, sent) = sync_channel(WAITING);
    let (name, from) = (hold.name.clone(), copy.clone());
    let answer = hold.start(move |client| receive(client, &name, &from, sent))?;
    let mut parcel = Parcel { messages, pieces: Vec::new(), bytes: 0 };
    let newer = copy.with_changes(database, |change| {
        parcel.put(change);
        Ok(())
    });
    if let Ok(newer) = &newer {
        parcel.finish(Done { newer: newer.clone(), counts });
    }
    drop(parcel);
    match answer.wait()? {
        Received::Kept => newer?.settle(database),
        Received::Overtaken => {
            Err(Error::Overtaken { name: hold.name.name.to_string(), place: hold.place().to_owned() })
        }
        Received::Stopped => newer.map(drop),
        Received::Unknown { words } => Err(Error::Postgres {
            place: hold.place().to_owned(),
            source: format!("{words}; whether it has kept the change is seen when the corpus is opened again").into(),
        }),
    }
}

/// A batch of rows to send to PostgreSQL.
struct Parcel {
    messages: SyncSender<Message>,
    pieces: Vec<Piece>,
    bytes: usize,
}

/// A row, or a piece of one.
struct Piece {
    table: &'static str,
    key: Vec<u8>,
    number: i32,
    bytes: Option<Vec<u8>>,
}

enum Message {
    Pieces(Vec<Piece>),
    Done(Done),
}

/// Marks the end of the rows.
struct Done {
    newer: Copy,
    counts: Option<Counts>,
}

/// The result of sending a change.
enum Received {
    Kept,
    /// Another client made a change first.
    Overtaken,
    /// The sender stopped before the end.
    Stopped,
    Unknown {
        words: String,
    },
}

impl Parcel {
    fn put(&mut self, RowChange { table, key, row }: RowChange) {
        let Some(row) = row else { return self.add(Piece { table, key, number: 0, bytes: None }) };
        for (number, bytes) in (0..).zip(row.chunks(PIECE_BYTES)) {
            self.add(Piece { table, key: key.clone(), number, bytes: Some(bytes.to_vec()) });
        }
    }

    fn add(&mut self, piece: Piece) {
        self.bytes += piece.key.len() + piece.bytes.as_ref().map_or(0, Vec::len);
        self.pieces.push(piece);
        if self.bytes >= BATCH_BYTES {
            self.send();
        }
    }

    /// A failed send is ignored: a receiver that has stopped reports the reason in the answer.
    fn send(&mut self) {
        self.bytes = 0;
        let _heard = self.messages.send(Message::Pieces(std::mem::take(&mut self.pieces)));
    }

    fn finish(&mut self, done: Done) {
        self.send();
        let _heard = self.messages.send(Message::Done(done));
    }
}

fn receive(client: &mut Client, name: &SharedName, from: &Copy, sent: Receiver<Message>) -> Outcome<Received> {
    if from.version == 0 {
        make_tables(client)?;
    }
    let mut change = client.transaction()?;
    let Some(number) = claim(&mut change, name, from)? else { return Ok(Received::Overtaken) };
    for message in sent {
        match message {
            Message::Pieces(pieces) => put(&mut change, number, from.version + 1, &pieces)?,
            Message::Done(Done { newer, counts }) => {
                let upgrade = "UPDATE memlocal_corpus SET schema = $2 WHERE number = $1 AND schema <> $2";
                change.execute(upgrade, &[&number, &VERSION])?;
                let insert = "INSERT INTO memlocal_change (corpus, version, digest) VALUES ($1, $2, $3)";
                change.execute(insert, &[&number, &newer.version, &newer.digest.0.as_slice()])?;
                if let Some(Counts { documents, passages, pending }) = counts {
                    let counts = [documents, passages, pending].map(u64::cast_signed);
                    let update =
                        "UPDATE memlocal_corpus SET documents = $2, passages = $3, pending = $4 WHERE number = $1";
                    change.execute(update, &[&number, &counts[0], &counts[1], &counts[2]])?;
                }
                return Ok(match change.commit() {
                    Ok(()) => Received::Kept,
                    Err(error) => Received::Unknown { words: words(&error) },
                });
            }
        }
    }
    Ok(Received::Stopped)
}

/// Runs in its own transaction, because checking whether an index exists locks its table.
fn make_tables(client: &mut Client) -> Outcome<()> {
    if client.query_one("SELECT to_regclass('memlocal_row') IS NOT NULL", &[])?.get(0) {
        return Ok(());
    }
    let mut making = client.transaction()?;
    making.batch_execute(MAKING_TABLES)?;
    making.batch_execute(TABLES)?;
    making.commit()
}

/// Locks a corpus against changes until the transaction ends; returns its number if the copy has all of its changes.
/// Creates the corpus if nothing of it was ever sent.
fn claim(change: &mut Transaction<'_>, name: &SharedName, from: &Copy) -> Outcome<Option<i64>> {
    if from.version == 0 {
        let make = "WITH made AS (
                INSERT INTO memlocal_corpus (id, space, name, schema) VALUES ($1, $2, $3, $4)
                ON CONFLICT DO NOTHING RETURNING number
            ) INSERT INTO memlocal_change SELECT number, 0, $5 FROM made";
        let (digest, text) = (from.digest.0.as_slice(), name.name.to_string());
        change.execute(make, &[&from.id, &name.space, &text, &VERSION, &digest])?;
    }
    let claim = "SELECT number FROM memlocal_corpus WHERE id = $1 AND NOT removed FOR UPDATE";
    let Some(number) = change.query_opt(claim, &[&from.id])?.map(|row| row.get::<_, i64>(0)) else { return Ok(None) };
    let newest = "SELECT version, digest FROM memlocal_change WHERE corpus = $1 ORDER BY version DESC LIMIT 1";
    let newest = change.query_one(newest, &[&number])?;
    let same = newest.get::<_, i64>(0) == from.version && newest.get::<_, &[u8]>(1) == from.digest.0;
    Ok(same.then_some(number))
}

fn put(change: &mut Transaction<'_>, corpus: i64, version: i64, pieces: &[Piece]) -> Outcome<()> {
    let tables: Vec<&str> = pieces.iter().map(|piece| piece.table).collect();
    let keys: Vec<&[u8]> = pieces.iter().map(|piece| piece.key.as_slice()).collect();
    let numbers: Vec<i32> = pieces.iter().map(|piece| piece.number).collect();
    let rows: Vec<Option<&[u8]>> = pieces.iter().map(|piece| piece.bytes.as_deref()).collect();
    let older = "DELETE FROM memlocal_row AS old USING unnest($3::text[], $4::bytea[]) AS new (tab, key)
        WHERE corpus = $1 AND version < $2 AND old.tab = new.tab AND old.key = new.key";
    change.execute(older, &[&corpus, &version, &tables, &keys])?;
    let newer = "INSERT INTO memlocal_row (corpus, version, tab, key, piece, row)
        SELECT $1, $2, * FROM unnest($3::text[], $4::bytea[], $5::integer[], $6::bytea[])";
    change.execute(newer, &[&corpus, &version, &tables, &keys, &numbers, &rows]).map(drop)
}

/// Messages from PostgreSQL, in this order.
enum Fetched {
    /// The number and digest of the newest change.
    Newest(i64, Vec<u8>),
    /// Tables and keys of changed rows.
    Changed(Vec<(String, Vec<u8>)>),
    /// Pieces of rows in their current state; the pieces of a row are consecutive.
    Pieces(Vec<(String, Vec<u8>, Vec<u8>)>),
}

/// Updates a copy that has no unsent changes to the state of the corpus, in one transaction; runs `without` before a
/// transaction that deletes documents is committed. Returns whether documents were deleted.
///
/// # Errors
/// [`Error::Postgres`], [`Error::DiskFull`]; nothing is changed then.
pub(crate) fn fetch(
    session: &Session,
    head: &Head,
    database: &Database,
    without: impl FnOnce() -> Result<()>,
) -> Result<bool> {
    let Some(copy) = Copy::of(database)? else { return Err(database.damaged("it is no copy any more")) };
    let (messages, fetched) = sync_channel(WAITING);
    let (corpus, after) = (head.number, copy.version);
    let answer = session.start(None, move |client| deliver(client, corpus, after, &messages))?;
    let intake = Intake::new(database, head.schema);
    database.verbatim(|| database.transact(|| take_in(database, intake, copy, fetched, answer, without)))
}

fn take_in(
    database: &Database,
    mut intake: Intake<'_>,
    mut copy: Copy,
    fetched: Receiver<Fetched>,
    answer: Answer<()>,
    without: impl FnOnce() -> Result<()>,
) -> Result<bool> {
    let mut row: Option<(String, Vec<u8>, Vec<u8>)> = None;
    for message in fetched {
        match message {
            Fetched::Newest(version, bytes) => {
                copy = Copy { version, digest: digest(Some(bytes)).unwrap_or(copy.digest), ..copy };
            }
            Fetched::Changed(keys) => keys.iter().try_for_each(|(table, key)| intake.forget(table, key))?,
            Fetched::Pieces(pieces) => {
                for (table, key, piece) in pieces {
                    match &mut row {
                        Some((of, same, bytes)) if *of == table && *same == key => bytes.extend(piece),
                        _ => {
                            if let Some((table, _, bytes)) = row.replace((table, key, piece)) {
                                intake.take(&table, &bytes)?;
                            }
                        }
                    }
                }
            }
        }
    }
    // An incomplete transfer is discarded.
    answer.wait()?;
    if let Some((table, _, bytes)) = row {
        intake.take(&table, &bytes)?;
    }
    intake.finish()?;
    let documents_went = intake.bereft.contains("document");
    if documents_went {
        without()?;
    }
    copy.settle(database)?;
    Ok(documents_went)
}

/// Sends one snapshot; ends early if the receiver has stopped.
fn deliver(client: &mut Client, corpus: i64, after: i64, messages: &SyncSender<Fetched>) -> Outcome<()> {
    let reading = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let mut reading = reading.start()?;
    let newest = "SELECT version, digest FROM memlocal_change WHERE corpus = $1 ORDER BY version DESC LIMIT 1";
    let newest = reading.query_one(newest, &[&corpus])?;
    let _heard = messages.send(Fetched::Newest(newest.get(0), newest.get(1)));
    if after > 0 {
        let changed = "SELECT tab, key FROM memlocal_row WHERE corpus = $1 AND version > $2 AND piece = 0";
        each_batch(&mut reading, changed, corpus, after, |rows| {
            messages.send(Fetched::Changed(rows.iter().map(|row| (row.get(0), row.get(1))).collect())).is_ok()
        })?;
    }
    let pieces = "SELECT tab, key, row FROM memlocal_row
        WHERE corpus = $1 AND version > $2 AND row IS NOT NULL ORDER BY tab, key, piece";
    each_batch(&mut reading, pieces, corpus, after, |rows| {
        let pieces = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2)));
        messages.send(Fetched::Pieces(pieces.collect())).is_ok()
    })
}

fn each_batch(
    reading: &mut Transaction<'_>,
    query: &str,
    corpus: i64,
    after: i64,
    mut hand_out: impl FnMut(&[postgres::Row]) -> bool,
) -> Outcome<()> {
    let portal = reading.bind(query, &[&corpus, &after])?;
    loop {
        let rows = reading.query_portal(&portal, FETCHED)?;
        if rows.is_empty() || !hand_out(&rows) {
            return Ok(());
        }
    }
}

/// Removes a corpus with all its rows, and the tables of its vectors.
pub(crate) fn remove(hold: &Hold, id: &str, vectors: &str) -> Result<()> {
    let (id, vectors) = (id.to_owned(), vectors.to_owned());
    hold.run(move |client| {
        let mut removing = client.transaction()?;
        let mark = "UPDATE memlocal_corpus SET removed = true WHERE id = $1 RETURNING number";
        let number: i64 = removing.query_one(mark, &[&id])?.get(0);
        removing.execute("DELETE FROM memlocal_row WHERE corpus = $1", &[&number])?;
        removing.execute("DELETE FROM memlocal_change WHERE corpus = $1", &[&number])?;
        for table in super::vectors::tables(&mut removing, &vectors)? {
            removing.batch_execute(&format!("DROP TABLE {table}"))?;
        }
        removing.commit()
    })
}
