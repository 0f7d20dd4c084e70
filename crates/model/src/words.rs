//! How are numbers said to people? Thousands with commas, nouns in the right number.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas_and_one_is_not_many() {
        let said = [0, 1, 999, 1000, 1_234_567].map(|number| counted(number, "pod"));
        assert_eq!(said, ["0 pods", "1 pod", "999 pods", "1,000 pods", "1,234,567 pods"]);
    }
}
