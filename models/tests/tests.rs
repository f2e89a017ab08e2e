//! Decoders, encoders, tokenizers and chat templates against their references, the readers of files, and fetching. One program,
//! since each program contains all networks; `random_input` and `steady_memory` measure the memory of their own.

mod adapter;
mod bits;
mod bundled;
mod chats;
mod decoder;
mod encoder;
mod exported;
#[cfg(unix)]
mod fetch;
mod formats;
mod packed;
mod padding;
mod published_tokens;
mod sentence;
mod sentencepiece;
mod smollm2;
mod texts;
