//! The attack by timing on a server with keys and a real model: does the time to a first token reveal whether another
//! tenant has sent a prompt with the same beginning?
//!
//! In each round a coin decides which of two fresh prompts the victim sends. The attacker then sends both, in random
//! order, measures its own times to the first token, and names the faster one (or the slower one, if that is right more
//! often). Every fifth round is a control with the victim's own key, whose prompts must be recognised.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::json;
use test_support::home::Home;
use test_support::serving::Serving;

/// Requests of the attacker, two in a round.
const REQUESTS: usize = 1000;
/// Rounds between two controls.
const CONTROL_EVERY: usize = 5;
const WORDS: usize = 64;
/// The probability that a test fails by chance.
const CHANCE: f64 = 1e-3;

const VOCABULARY: [&str; 16] = [
    "lamp", "pier", "storm", "harbour", "bread", "ferry", "horse", "meadow", "winter", "letter", "stone", "river",
    "market", "window", "garden", "morning",
];

/// Reproducible pseudo-random numbers (the constants of Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn prompt(&mut self) -> String {
        (0..WORDS).map(|_| VOCABULARY[self.below(VOCABULARY.len())]).collect::<Vec<_>>().join(" ")
    }
}

/// Seconds to the first token of an answer.
fn first_token(address: &str, key: &str, prompt: &str) -> f64 {
    let messages = json!([{ "role": "user", "content": prompt }]);
    let body = json!({ "model": "smollm2-135m-instruct", "messages": messages, "max_tokens": 1, "stream": true });
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    let begun = Instant::now();
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut first = None;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let is_text = line.contains("\"content\":\"") && !line.contains("\"content\":\"\"");
        if line.contains("data: ") && is_text && first.is_none() {
            first = Some(begun.elapsed().as_secs_f64());
        }
        assert!(!line.contains("\"error\""), "{line}");
    }
    // A first token without text, such as the end of the answer, is there with the response.
    first.unwrap_or_else(|| begun.elapsed().as_secs_f64())
}

/// The probability of at least this many heads, or at most as many as the rest, of fair coins: what a guesser reaches who
/// may turn all guesses round.
fn two_sided(right: usize, rounds: usize) -> f64 {
    let most = right.max(rounds - right);
    let mut log_choose = 0.0;
    let mut tail = 0.0;
    for heads in 0..=rounds {
        if heads > 0 {
            log_choose += ((rounds - heads + 1) as f64 / heads as f64).ln();
        }
        if heads >= most {
            tail += (log_choose - rounds as f64 * std::f64::consts::LN_2).exp();
        }
    }
    (2.0 * tail).min(1.0)
}

/// The share of random changes of signs whose mean is at least as far from zero.
fn by_permutation(differences: &[f64], random: &mut Random) -> f64 {
    const TRIES: usize = 10_000;
    let sum = differences.iter().sum::<f64>().abs();
    let mut turned = || differences.iter().map(|one| if random.below(2) == 0 { *one } else { -one }).sum::<f64>().abs();
    (1 + (0..TRIES).filter(|_| turned() >= sum).count()) as f64 / (TRIES + 1) as f64
}

/// The result of some rounds.
#[derive(Default)]
struct Guesses {
    right: usize,
    /// Time of the prompt that the victim did not send, less that of the other, in seconds.
    differences: Vec<f64>,
}

impl Guesses {
    fn play(&mut self, address: &str, victim: &str, attacker: &str, random: &mut Random) {
        let (sent, other) = (random.prompt(), random.prompt());
        first_token(address, victim, &format!("{sent} My number is {}.", random.below(1000)));
        let time = |prompt: &str| first_token(address, attacker, &format!("{prompt} Is this known?"));
        let (of_sent, of_other) = if random.below(2) == 0 {
            let of_sent = time(&sent);
            (of_sent, time(&other))
        } else {
            let of_other = time(&other);
            (time(&sent), of_other)
        };
        self.right += usize::from(of_sent < of_other);
        self.differences.push(of_other - of_sent);
    }

    /// Prints the results; the probabilities by the guesses and by the times.
    fn report(&self, who: &str, random: &mut Random) -> [f64; 2] {
        let rounds = self.differences.len();
        let mean = self.differences.iter().sum::<f64>() / rounds.max(1) as f64 * 1e3;
        let found = [two_sided(self.right, rounds), by_permutation(&self.differences, random)];
        println!(
            "{who}: {} of {rounds} right; the prompt that was sent is {mean:.2} ms faster; p = {:.3} by guesses, {:.4} by times",
            self.right, found[0], found[1]
        );
        found
    }
}

/// `MEMLOCAL_ATTACK_REQUESTS=n` makes n requests of the attacker instead of a thousand.
#[test]
#[ignore = "takes minutes: a thousand requests to a real model"]
fn the_time_to_a_first_token_reveals_nothing_of_another_tenant() {
    let requests = std::env::var("MEMLOCAL_ATTACK_REQUESTS").map_or(REQUESTS, |n| n.parse().expect("a number"));
    let Some(home) = Home::new("timing") else { return };
    let [victim, attacker] = ["ann", "eve"].map(|name| home.get(&["keys", "add", name]).trim().to_owned());
    let serving = Serving::start(&home, &[]);
    let address = &serving.address;
    let mut random = Random(5);
    let (mut attack, mut control) = (Guesses::default(), Guesses::default());
    for _ in 0..3 {
        first_token(address, &attacker, &random.prompt());
    }
    for round in 0..requests / 2 {
        attack.play(address, &victim, &attacker, &mut random);
        if round % CONTROL_EVERY == 0 {
            control.play(address, &victim, &victim, &mut random);
        }
    }
    let [by_guesses, by_times] = attack.report("another tenant", &mut random);
    let [own_guesses, own_times] = control.report("the same tenant", &mut random);
    assert!(own_guesses < CHANCE && own_times < CHANCE, "the attack does not work where it should");
    assert!(by_guesses > CHANCE && by_times > CHANCE, "a tenant recognises another's prompts");
}

#[test]
fn the_tests_of_significance_distinguish_noise_from_a_shift() {
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    close(two_sided(5, 10), 1.0);
    close(two_sided(10, 10), 2.0 / 1024.0);
    close(two_sided(0, 10), 2.0 / 1024.0);
    close(two_sided(9, 10), 22.0 / 1024.0);
    let mut random = Random(1);
    let noise: Vec<f64> = (0..200).map(|_| random.below(1000) as f64 - 499.5).collect();
    assert!(by_permutation(&noise, &mut random) > 0.01);
    let shifted: Vec<f64> = noise.iter().map(|one| one + 200.0).collect();
    assert!(by_permutation(&shifted, &mut random) < 0.001);
}
