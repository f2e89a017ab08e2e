//! Fetching the changes of a corpus from PostgreSQL into a copy.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use postgres::{Client, IsolationLevel, Transaction};

use crate::Result;
use crate::database::Database;
use crate::shared::copy::{Copy, Intake};
use crate::shared::journal::Head;
use crate::shared::session::{Answer, Session};
use crate::shared::tables::{Outcome, digest};

/// Number of pieces fetched at once.
const FETCHED: i32 = 500;
/// Batches queued between sender and receiver.
const WAITING: usize = 2;

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
/// transaction that deletes documents is committed.
///
/// # Errors
/// [`Error::Postgres`], [`Error::DiskFull`]; nothing is changed then.
pub(crate) fn fetch(
    session: &Session,
    head: &Head,
    database: &Database,
    without: impl FnOnce() -> Result<()>,
) -> Result<()> {
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
) -> Result<()> {
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
    if intake.bereft.contains("document") {
        without()?;
    }
    copy.settle(database)
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
