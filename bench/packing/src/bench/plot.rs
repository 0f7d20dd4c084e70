//! The times as a picture: two bars an input on a logarithmic scale, so that factors are lengths.

use super::row::Row;

const LEFT: f64 = 270.0;
const WIDTH: f64 = 620.0;
const RIGHT: f64 = 110.0;
const ROW: f64 = 34.0;
const TOP: f64 = 64.0;
/// The scale starts at a microsecond.
const FROM_MS: f64 = 1e-3;

/// An SVG of all rows.
pub fn svg(rows: &[Row]) -> String {
    let to = rows
        .iter()
        .flat_map(|row| [row.ours.ms, row.reference.map_or(0.0, |side| side.ms)]);
    let decades = (to.fold(1.0, f64::max) / FROM_MS).log10().ceil();
    #[allow(clippy::cast_precision_loss, reason = "a few dozen rows")]
    let height = TOP + ROW * rows.len() as f64 + 24.0;
    let total = LEFT + WIDTH + RIGHT;
    let mut lines = vec![
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {total} {height}\" font-family=\"sans-serif\" font-size=\"12\">"
        ),
        format!("<rect width=\"{total}\" height=\"{height}\" fill=\"#ffffff\"/>"),
        format!(
            "<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">Time for one plan, logarithmic: <tspan fill=\"#1f6f8b\">ours</tspan>, <tspan fill=\"#b0b0b0\">reference</tspan></text>"
        ),
    ];
    lines.extend(grid(decades, height));
    for (number, row) in rows.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "a few dozen rows")]
        let y = TOP + ROW * number as f64;
        lines.extend(bars(row, y, decades));
    }
    lines.push("</svg>".to_owned());
    lines.join("\n") + "\n"
}

fn x(ms: f64, decades: f64) -> f64 {
    LEFT + WIDTH * (ms.max(FROM_MS) / FROM_MS).log10() / decades
}

fn grid(decades: f64, height: f64) -> Vec<String> {
    const NAMES: [&str; 9] = [
        "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s",
    ];
    let mut ms = FROM_MS;
    let mut lines = Vec::new();
    for name in NAMES {
        let at = x(ms, decades);
        if at > LEFT + WIDTH + 0.5 {
            break;
        }
        lines.push(format!(
            "<line x1=\"{at:.1}\" y1=\"48\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"#e4e4e4\"/>",
            height - 12.0
        ));
        lines.push(format!(
            "<text x=\"{at:.1}\" y=\"42\" text-anchor=\"middle\" fill=\"#777777\">{name}</text>"
        ));
        ms *= 10.0;
    }
    lines
}

fn bars(row: &Row, y: f64, decades: f64) -> Vec<String> {
    let name = format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        y + 16.0,
        row.input
    );
    let bar = |ms: f64, y: f64, colour: &str| {
        format!(
            "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"10\" fill=\"{colour}\"/>",
            x(ms, decades) - LEFT
        )
    };
    let mut lines = vec![name, bar(row.ours.ms, y + 2.0, "#1f6f8b")];
    if let (Some(reference), Some(ratio)) = (row.reference, row.ratio()) {
        lines.push(bar(reference.ms, y + 13.0, "#b0b0b0"));
        lines.push(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\">{ratio:.0} ×</text>",
            LEFT + WIDTH + 10.0,
            y + 16.0
        ));
    }
    lines
}
