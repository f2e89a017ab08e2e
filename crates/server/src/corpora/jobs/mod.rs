//! Ingest jobs: one at a time per corpus. Every step is durable, so a cancelled or failed job resumes where it stopped.
//! Its files and a journal are in the data folder: the next server lists it, and resumes it if the end of the server
//! interrupted it. Deleting a finished job or its corpus deletes its files.

mod add;
mod failed_file;
mod job;
pub(crate) mod list;
mod routes;
mod run;
#[cfg(test)]
mod scripted;

pub(crate) use failed_file::UNSUPPORTED;
pub(super) use failed_file::{FailedFile, hint};
pub(crate) use job::{CancelOnDrop, Job, Progress};
pub(super) use job::{NewJob, Upload};
pub(super) use routes::routes;
pub(crate) use run::resume_interrupted;
pub(super) use run::{start, start_now};
