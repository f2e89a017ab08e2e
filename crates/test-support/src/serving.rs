//! Runs `memlocal serve` with real models.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::home::{Home, memlocal};

/// A server that ends when the value is dropped.
pub struct Serving {
    child: Child,
    /// Host and port.
    pub address: String,
    /// Its log, read as it is written: a full pipe would block the server.
    log: Option<JoinHandle<String>>,
}

impl Serving {
    /// Starts `memlocal serve` on a free port, with further arguments.
    pub fn start(home: &Home, more: &[&str]) -> Serving {
        Serving::start_by(home, &[], more)
    }

    /// The same by a program that runs what follows its own words.
    pub fn start_by(home: &Home, by: &[&str], more: &[&str]) -> Serving {
        let words = [by, &memlocal()].concat();
        let mut command = home.program(words[0]);
        command.args(&words[1..]).args(["serve", "--port", "0"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = child.stderr.take().unwrap();
        let log = thread::spawn(move || {
            let mut said = String::new();
            errors.read_to_string(&mut said).unwrap();
            said
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("memlocal listens on http://") else {
            panic!("{line}{}", log.join().unwrap());
        };
        Serving { address: address.to_owned(), child, log: Some(log) }
    }

    /// The response to a GET request: status line, headers and body.
    pub fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}connection: close\r\n\r\n", self.address).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// The JSON response to a POST request with a JSON body.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", self.address);
        write!(stream, "{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (_, content) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(content).unwrap_or_else(|_| panic!("{text}"))
    }

    /// Bytes of memory that it holds and no file backs.
    #[cfg(target_os = "linux")]
    pub fn anonymous_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
    }

    /// Asks the server to end; its exit code and what it has logged.
    pub fn stop(mut self) -> (i32, String) {
        let terminated = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(terminated.success());
        let log = self.log.take().unwrap().join().unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), log)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
