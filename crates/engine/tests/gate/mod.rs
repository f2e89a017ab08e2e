//! A call at whose texts the engine's thread waits, so that a test decides when steps run.

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use calls::{BoxFuture, Call, CallError, Caller, OnText, Reply};
use engine::Engine;
use futures_util::FutureExt;

const PATIENCE: Duration = Duration::from_mins(1);

/// Holds the engine's thread inside a step until it is passed or dropped.
pub struct Gate {
    arrived: Receiver<()>,
    go_on: Sender<()>,
}

impl Gate {
    /// Submits a call for free text and waits until the engine's thread has its first text.
    pub fn hold(engine: &Engine, call: Call) -> (BoxFuture<'_, Result<Reply, CallError>>, Gate) {
        let (arrives, arrived) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        let on_text = OnText::new(move |_| {
            let _ = arrives.send(());
            let _ = may_go_on.lock().unwrap().recv_timeout(PATIENCE);
        });
        let mut reply = engine.call(Call { on_text: Some(on_text), ..call });
        assert!((&mut reply).now_or_never().is_none(), "the call is submitted, not answered");
        let gate = Gate { arrived, go_on };
        gate.arrive();
        (reply, gate)
    }

    /// Lets the engine's thread run to the next text.
    pub fn pass(&self) {
        self.go_on.send(()).unwrap();
        self.arrive();
    }

    fn arrive(&self) {
        self.arrived.recv_timeout(PATIENCE).expect("the call has ended or the engine hangs");
    }
}
