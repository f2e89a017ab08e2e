//! Memorises a file and answers a question from it with citations, by the method `rag` and a scripted model. With an engine
//! in its place (`crates/engine/examples/json.rs`) the same calls are answered by a real one.
//!
//!     cargo run -p memory --example ask

use std::error::Error;

use calls::{Priority, Scripted, ScriptedEmbedder, TenantId, WorkflowId};
use memory::rag::Rag;
use memory::{Session, Settings, Trace};
use sources::ReadOptions;
use store::Corpora;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut writer = Corpora::new(folder.path()).create("letters")?;
    let (model, trace) = (Scripted::new(8192).answer("answer", "Ada Brook kept the lighthouse at Pell."), Trace::off());
    let session = Session {
        caller: &model,
        embedder: &ScriptedEmbedder,
        settings: Settings::new(&Rag),
        trace: &trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        priority: Priority::Interactive,
        on_text: None,
    };
    let file = folder.path().join("pell.txt");
    std::fs::write(&file, "Ada Brook kept the lighthouse at Pell. In 1911 she married Tom Reed.")?;
    for source in sources::read(&file, &ReadOptions::default())? {
        memory::add(&source, &mut writer, &session)?;
    }
    memory::prepare(&mut writer, &session, &mut |_| {}).await?;
    let answer = memory::ask("Who kept the lighthouse?", &writer, &session).await?;
    println!("{}", answer.answer);
    for citation in answer.citations {
        println!("  {}: \"{}\"", citation.path, citation.quote);
    }
    Ok(())
}
