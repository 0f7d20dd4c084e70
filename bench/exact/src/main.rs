use std::time::Instant;
use packing::cost::*;
#[path = "../../../crates/packing/tests/picture/mod.rs"]
mod picture;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let kwok = picture::machines(&workloads::catalogue::kwok());
    let fake = picture::machines(&workloads::catalogue::fake(400));
    let mut problems = vec![];
    for seed in [84, 7, 1984] { for n in [100, 500, 1500] { problems.push((format!("kwok-{seed}-{n}"), picture::picture(&workloads::mixed::pending(n, seed), &kwok))); } }
    if let Some(f) = args.get(1) { let m = aws(f);
    for seed in [84, 7, 1984] { for n in [100, 500, 1500] { problems.push((format!("aws-{seed}-{n}"), picture::picture(&workloads::mixed::pending(n, seed), &m))); } } }
    for n in [500, 5000, 20000] { problems.push((format!("diverse-{n}"), picture::picture(&workloads::diverse::diverse(n, workloads::diverse::Types::Fake400), &fake))); }
    for (name, p) in problems {
        let t = Instant::now();
        let f = portfolio(&p, &Settings::default());
        let ms = t.elapsed().as_secs_f64() * 1e3;
        let prices: Vec<String> = f.passes.iter().map(|p| format!("{:.3}/{}/{}", p.price as f64 / 1e12, p.nodes, p.unplaced)).collect();
        println!("{name:14} classes {:4} {:8.3} nodes {:4} steps {:9} {ms:7.2} ms  {}", p.classes.len(), f.candidates[0].price as f64 / 1e12, f.candidates[0].packed.nodes(), f.steps, prices.join(" "));
    }
}
fn aws(f: &str) -> Vec<picture::Machine> {
    let text = std::fs::read_to_string(f).unwrap();
    text.lines().map(|l| { let v: serde_json::Value = serde_json::from_str(l).unwrap();
        let a = |k: &str| -> [i64; 3] { serde_json::from_value(v[k].clone()).unwrap() };
        picture::Machine { arch: v["arch"].as_str().unwrap().into(), capacity: a("capacity"), allocatable: a("allocatable"),
            offers: v["offers"].as_array().unwrap().iter().map(|o| (o[0].as_str().unwrap().into(), o[1].as_str().unwrap().into(), (o[2].as_f64().unwrap() * 1e12) as u64)).collect() } }).collect()
}
