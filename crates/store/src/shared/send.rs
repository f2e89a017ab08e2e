//! Sending the change of a copy to PostgreSQL, in batches that another thread writes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use postgres::{Client, Transaction};

use crate::counts::counts_of;
use crate::database::Database;
use crate::shared::copy::{self, Copy, RowChange};
use crate::shared::hold::{Hold, SharedName};
use crate::shared::session::words;
use crate::shared::tables::{Outcome, make_tables};
use crate::version::VERSION;
use crate::{Counts, Error, Result};

/// Longer rows are split into pieces of this size.
const PIECE_BYTES: usize = 64 << 10;
/// Approximate size of one batch.
const BATCH_BYTES: usize = 4 << 20;
/// Batches queued between sender and receiver.
const WAITING: usize = 2;

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
