//! Rust without frame pointers: closures behind traits, channels, locks, panics that are caught.
//!
//!     rust_frames [--wait] [--linger] [MILLISECONDS=2000]
//!
//! Truth: each thread works in rounds (a wait of 2 ms, its time measured) for so long, and then stands still where it
//! waits, while main prints the truth and lingers; `waits` has one record per thread, called by the thread's name:
//!
//! - `sleep`: Sleeper as Stay → stay → std::thread::sleep
//! - `deep`: 40 × descend → std::thread::sleep
//! - `receive`: receive → std::sync::mpsc::Receiver::recv_timeout
//! - `condvar`: wait_condition → std::sync::Condvar::wait_timeout
//! - `park`: park_here → std::thread::park_timeout
//! - `cleanup`: Guard as Drop → drop: runs while a panic passes by
//! - `busy`: sorts, formats and panics, and never waits of its own will

use std::collections::BTreeMap;
use std::io::Read;
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const DEEP: u32 = 40;
const LIMIT: u32 = 120;

extern "C" {
    fn gettid() -> i32;
    fn alarm(seconds: u32) -> u32;
    fn clock_gettime(clock: i32, now: *mut [i64; 2]) -> i32;
    fn prctl(option: i32, name: *const u8) -> i32;
    fn _exit(status: i32) -> !;
}

static HOLDING: AtomicBool = AtomicBool::new(false);
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Its argument, of which the compiler then knows nothing; older ones have no std::hint::black_box.
fn kept(value: u32) -> u32 {
    unsafe { std::ptr::read_volatile(&value) }
}

#[derive(Default)]
struct Wait {
    calls: u64,
    ns: u64,
    told: bool,
}

impl Wait {
    /// How long to wait this time; for ever once everybody is to be held still.
    fn length(&mut self) -> Duration {
        if !HOLDING.load(Ordering::SeqCst) {
            return Duration::from_millis(2);
        }
        if !self.told {
            HELD.fetch_add(1, Ordering::SeqCst);
        }
        self.told = true;
        Duration::from_secs(3600)
    }

    fn measure(&mut self, wait: impl FnOnce(Duration)) {
        let length = self.length();
        let begin = Instant::now();
        wait(length);
        self.calls += 1;
        self.ns += begin.elapsed().as_nanos() as u64;
    }
}

type Record = Arc<Mutex<Wait>>;

trait Stay {
    fn stay(&self, wait: &mut Wait) -> u32;
}

struct Sleeper;

impl Stay for Sleeper {
    #[inline(never)]
    fn stay(&self, wait: &mut Wait) -> u32 {
        wait.measure(thread::sleep);
        1
    }
}

#[inline(never)]
fn descend(depth: u32, wait: &mut Wait) -> u32 {
    if depth <= 1 {
        wait.measure(thread::sleep);
        return 1;
    }
    kept(descend(depth - 1, wait)) + 1
}

#[inline(never)]
fn receive(channel: &mpsc::Receiver<u32>, wait: &mut Wait) -> u32 {
    wait.measure(|length| {
        channel.recv_timeout(length).unwrap_or(0);
    });
    1
}

#[inline(never)]
fn wait_condition(pair: &(Mutex<()>, Condvar), wait: &mut Wait) -> u32 {
    wait.measure(|length| {
        let guard = pair.0.lock().unwrap();
        drop(pair.1.wait_timeout(guard, length).unwrap());
    });
    1
}

#[inline(never)]
fn park_here(wait: &mut Wait) -> u32 {
    wait.measure(thread::park_timeout);
    1
}

struct Guard<'a>(&'a mut Wait);

impl Drop for Guard<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        self.0.measure(thread::sleep);
    }
}

#[inline(never)]
fn fall(value: u32) -> u32 {
    if value > 0 {
        panic::resume_unwind(Box::new(value));
    }
    kept(value) + 1
}

#[inline(never)]
fn clean_up(wait: &mut Wait) -> u32 {
    let guard = Guard(wait);
    let result = fall(3);
    drop(guard);
    result
}

#[inline(never)]
fn catch_fall(wait: &mut Wait) -> u32 {
    panic::catch_unwind(panic::AssertUnwindSafe(|| clean_up(wait))).unwrap_or(1)
}

#[inline(never)]
fn burn(wait: &mut Wait) -> u32 {
    let mut numbers: Vec<u32> = (0..2000u32).map(|i| i.wrapping_mul(2654435761)).collect();
    numbers.sort_by_key(|number| number % 1000);
    let words: BTreeMap<String, u32> = numbers.iter().take(200).map(|number| (format!("word {number:?}"), *number)).collect();
    let _ = panic::catch_unwind(|| fall(1));
    if wait.length() > Duration::from_secs(1) {
        thread::sleep(Duration::from_secs(3600));
    }
    kept(words.len() as u32)
}

fn job(name: &str) -> Box<dyn FnMut(&mut Wait) -> u32 + Send> {
    match name {
        "sleep" => {
            let stays: Box<dyn Stay + Send> = Box::new(Sleeper);
            Box::new(move |wait| stays.stay(wait))
        }
        "deep" => Box::new(|wait| descend(DEEP, wait)),
        "receive" => {
            let (sender, receiver) = mpsc::channel();
            Box::new(move |wait| {
                let _ = &sender; // without it nothing is waited for
                receive(&receiver, wait)
            })
        }
        "condvar" => {
            let pair = (Mutex::new(()), Condvar::new());
            Box::new(move |wait| wait_condition(&pair, wait))
        }
        "park" => Box::new(park_here),
        "cleanup" => Box::new(catch_fall),
        _ => Box::new(burn),
    }
}

fn now_ns() -> u64 {
    let mut now = [0i64; 2];
    unsafe { clock_gettime(1, &mut now) };
    now[0] as u64 * 1_000_000_000 + now[1] as u64
}

fn start(name: &'static str, gate: &Arc<Barrier>, tids: &mpsc::Sender<(&'static str, i32)>, record: &Record) {
    let (gate, tids, record) = (gate.clone(), tids.clone(), record.clone());
    let work = move || {
        let mut job = job(name);
        let mut wait = Wait::default();
        tids.send((name, unsafe { gettid() })).unwrap();
        gate.wait();
        loop {
            job(&mut wait);
            let mut shared = record.lock().unwrap();
            (shared.calls, shared.ns) = (wait.calls, wait.ns);
        }
    };
    thread::Builder::new().name(name.to_string()).spawn(work).unwrap();
}

fn asleep(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 2..].starts_with('S')
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let ms: u64 = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(2000);
    unsafe {
        alarm(LIMIT);
        prctl(15, b"rust_frames\0".as_ptr());
    }
    let names = ["sleep", "deep", "receive", "condvar", "park", "cleanup", "busy"];
    let gate = Arc::new(Barrier::new(names.len() + 1));
    let (sender, receiver) = mpsc::channel();
    let mut records: BTreeMap<&str, Record> = BTreeMap::new();
    for name in names {
        let record = records.entry(name).or_default();
        start(name, &gate, &sender, record);
    }
    let threads: Vec<(&str, i32)> = receiver.iter().take(names.len()).collect();
    let pid = std::process::id();
    let tids: Vec<String> = threads.iter().map(|thread| thread.1.to_string()).collect();
    println!(r#"{{"ready": true, "pid": {pid}, "pids": [{pid}], "tids": [{pid}, {}]}}"#, tids.join(", "));
    let mut byte = [0u8];
    if has("--wait") && std::io::stdin().read(&mut byte).unwrap_or(0) != 1 {
        std::process::exit(1);
    }
    let begin = now_ns();
    gate.wait();
    thread::sleep(Duration::from_millis(ms));
    HOLDING.store(true, Ordering::SeqCst);
    while HELD.load(Ordering::SeqCst) < names.len() {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(50)); // from its last question to where it waits
    while !threads.iter().all(|thread| asleep(thread.1)) {
        thread::sleep(Duration::from_millis(1));
    }
    let waits: Vec<String> = threads
        .iter()
        .map(|(name, tid)| {
            let wait = records[name].lock().unwrap();
            let (calls, ns) = (wait.calls, wait.ns);
            format!(r#"{{"function": "{name}", "pid": {pid}, "tid": {tid}, "calls": {calls}, "blocks": {calls}, "ns": {ns}}}"#)
        })
        .collect();
    let (end, waits) = (now_ns(), waits.join(", "));
    println!(r#"{{"workload": "rust_frames", "pid": {pid}, "begin_ns": {begin}, "end_ns": {end}, "waits": [{waits}], "threads": []}}"#);
    while has("--linger") && std::io::stdin().read(&mut byte).unwrap_or(0) == 1 {}
    unsafe { _exit(0) } // the others stay where they are
}
