//! How are numbers said to people? Thousands with commas, nouns in the right number.

use crate::quantity::Quantity;

/// Thousands with commas.
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 pod`, `2 pods`, `1,200 pods`.
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number as u128))
}

/// An amount that can only be bytes in the largest unit, a digit behind the point, rounded down: `687.3Gi`. Others as
/// they are written.
pub fn amount(quantity: Quantity) -> String {
    const UNITS: [(&str, i128); 3] = [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20)];
    let value = i128::from(quantity.value());
    let Some((suffix, unit)) = UNITS.into_iter().find(|(_, unit)| value >= *unit) else {
        return quantity.to_string();
    };
    let tenths = value * 10 / unit;
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}{suffix}"),
        (whole, tenth) => format!("{whole}.{tenth}{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_of_bytes_is_said_in_a_unit_people_read_and_never_as_more_than_it_is() {
        let said = ["737997855129", "64Gi", "31040Mi", "1048575", "3670m", "110"];
        let said = said.map(|text| amount(text.parse().unwrap()));
        assert_eq!(said, ["687.3Gi", "64Gi", "30.3Gi", "1048575", "3670m", "110"]);
    }

    #[test]
    fn thousands_have_commas_and_one_is_not_many() {
        let said = [0, 1, 999, 1000, 1_234_567].map(|number| counted(number, "pod"));
        assert_eq!(said, ["0 pods", "1 pod", "999 pods", "1,000 pods", "1,234,567 pods"]);
    }
}
