//! Ranked search: matches the words of a query with the words of names, types and observations.
//!
//! It reads the whole graph for each query instead of keeping an index. Five megabytes take a few tens of milliseconds,
//! nothing needs updating after a change, and memory use does not depend on the number of distinct words.

use crate::format::Entity;
use crate::graph::Item;
use std::sync::Arc;

/// Maximum words of a query; the others are ignored.
const WORDS_MAX: usize = 32;
/// Maximum characters of a word.
const WORD_CHARS_MAX: usize = 64;
/// The weight of a word by where it is found.
const IN_NAME: f32 = 4.0;
const IN_TYPE: f32 = 2.0;
const IN_OBSERVATION: f32 = 1.0;
/// The weight of a prefix, relative to the whole word.
const PREFIX: f32 = 0.5;
/// BM25's k1 (how soon repetition saturates) and b (length normalization).
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.4;

/// The words of a query.
#[derive(Debug)]
pub(crate) struct Query {
    words: Vec<String>,
    /// The first bytes of all words, to skip most words of the graph quickly.
    firsts: [bool; 256],
}

/// An entity that matches a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit {
    /// Its index in the graph.
    pub(crate) at: usize,
    pub(crate) score: f32,
}

impl Query {
    /// `None` if it contains no word.
    pub(crate) fn of(text: &str) -> Option<Query> {
        let (mut words, mut firsts) = (Vec::new(), [false; 256]);
        each_word(text, |word| {
            if words.len() < WORDS_MAX && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        });
        words.iter().filter_map(|word| word.bytes().next()).for_each(|first| firsts[usize::from(first)] = true);
        (!words.is_empty()).then_some(Query { words, firsts })
    }

    /// Adds the weight of each query word in `text` to `found`; returns the number of words in the text.
    fn weigh(&self, text: &str, worth: f32, found: &mut [f32]) -> usize {
        let mut count = 0;
        each_word(text, |word| {
            count += 1;
            if !word.bytes().next().is_some_and(|first| self.firsts[usize::from(first)]) {
                return;
            }
            for (wanted, found) in self.words.iter().zip(found.iter_mut()) {
                if word == wanted {
                    *found += worth;
                } else if word.starts_with(wanted.as_str()) {
                    *found += worth * PREFIX;
                }
            }
        });
        count
    }

    /// The entities that contain at least one word, best first; ties in the order of the graph.
    pub(crate) fn rank<'a>(&self, entities: impl Iterator<Item = (usize, &'a Arc<Item<Entity>>)>) -> Vec<Hit> {
        let words = self.words.len();
        let mut all = 0_usize;
        let mut total_length = 0_usize;
        let mut holders = vec![0_usize; words];
        let mut candidates: Vec<(usize, usize)> = Vec::new();
        let mut weights: Vec<f32> = Vec::new();
        let mut found = vec![0.0_f32; words];
        for (at, item) in entities {
            found.fill(0.0);
            let entity = item.value();
            let mut length = self.weigh(&entity.name, IN_NAME, &mut found);
            length += self.weigh(&entity.entity_type, IN_TYPE, &mut found);
            for observation in &entity.observations {
                length += self.weigh(observation, IN_OBSERVATION, &mut found);
            }
            all += 1;
            total_length += length;
            if found.iter().any(|weight| *weight > 0.0) {
                holders.iter_mut().zip(&found).for_each(|(count, weight)| *count += usize::from(*weight > 0.0));
                candidates.push((at, length));
                weights.extend_from_slice(&found);
            }
        }
        let average = total_length as f32 / all.max(1) as f32;
        // A rare word tells more than a common one.
        let rarity: Vec<f32> = holders
            .iter()
            .map(|count| (1.0 + (all as f32 - *count as f32 + 0.5) / (*count as f32 + 0.5)).ln())
            .collect();
        let score = |(place, (at, length)): (usize, &(usize, usize))| {
            let found = &weights[place * words..(place + 1) * words];
            let held_back = SATURATION * (1.0 - LENGTH + LENGTH * *length as f32 / average.max(1.0));
            let sum: f32 = found
                .iter()
                .zip(&rarity)
                .map(|(weight, rarity)| rarity * weight * (SATURATION + 1.0) / (weight + held_back))
                .sum();
            let matched = found.iter().filter(|weight| **weight > 0.0).count();
            Hit { at: *at, score: sum * matched as f32 / words as f32 }
        };
        let mut hits: Vec<Hit> = candidates.iter().enumerate().map(score).collect();
        hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.at.cmp(&b.at)));
        hits
    }

    /// The observations of an entity, those with most words first, otherwise in order.
    pub(crate) fn best<'a>(&self, entity: &'a Entity, count: usize) -> Vec<&'a str> {
        let mut found = vec![0.0_f32; self.words.len()];
        let mut worth = |text: &str| {
            found.fill(0.0);
            self.weigh(text, 1.0, &mut found);
            found.iter().map(|weight| weight.min(1.0)).sum::<f32>()
        };
        let mut texts: Vec<(f32, &str)> = entity.observations.iter().map(|text| (worth(text), text.as_str())).collect();
        texts.sort_by(|a, b| b.0.total_cmp(&a.0));
        texts.into_iter().take(count).map(|(_, text)| text).collect()
    }
}

/// Calls `see` with each word in lower case: runs of letters and digits. The parts of a `CamelCase` word count too. In
/// scripts written without spaces each character is a word.
fn each_word(text: &str, mut see: impl FnMut(&str)) {
    let mut word = String::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        if run.is_empty() {
            continue;
        }
        let mut parts = 0;
        let mut part_start = 0;
        let mut before_lower = false;
        let mut see_as_lower = |run: &str| {
            word.clear();
            if run.is_ascii() {
                word.extend(run.chars().take(WORD_CHARS_MAX).map(|c| c.to_ascii_lowercase()));
            } else {
                word.extend(run.chars().take(WORD_CHARS_MAX).flat_map(char::to_lowercase));
            }
            see(&word);
        };
        if !run.is_ascii() && run.chars().any(is_unspaced) {
            let mut rest = run;
            while let Some(c) = rest.chars().next() {
                let end = if is_unspaced(c) { c.len_utf8() } else { rest.find(is_unspaced).unwrap_or(rest.len()) };
                see_as_lower(&rest[..end]);
                rest = &rest[end..];
            }
            continue;
        }
        for (at, c) in run.char_indices() {
            let upper = c.is_uppercase();
            if upper && before_lower {
                see_as_lower(&run[part_start..at]);
                part_start = at;
                parts += 1;
            }
            before_lower = !upper;
        }
        if parts > 0 {
            see_as_lower(&run[part_start..]);
        }
        see_as_lower(run);
    }
}

/// Han, Hiragana, Katakana, Thai, Lao, Khmer, Burmese: written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn texts_are_cut_into_words() {
        for (text, expected) in [
            ("Hello, World_2!", "hello world 2"),
            ("ÄPFEL", "äpfel"),
            ("userServiceV2", "user service v2 userservicev2"),
            ("HTTP", "http"),
            ("東京tower", "東 京 tower"),
            ("  ", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn the_best_entity_comes_first() {
        let entities = [
            ("Ada", "person", "Ada wrote the first program. She knew Charles."),
            ("Charles", "person", "Built an engine."),
            ("Analytical Engine", "machine", "A computer of 1837."),
            ("Paris", "city", "Has an engineering school."),
            ("Long", "text", "engine among very many other words that have nothing to do with anything at all in here"),
        ];
        let lines: Vec<String> = entities
            .iter()
            .map(|(n, t, o)| format!(r#"{{"type":"entity","name":"{n}","entityType":"{t}","observations":["{o}"]}}"#))
            .collect();
        let graph = Graph::read(lines.join("\n").as_bytes());
        let names = |query: &str| -> Vec<&str> {
            let query = Query::of(query).unwrap();
            let hits = query.rank(graph.entities().iter().enumerate());
            hits.iter().map(|hit| entities[hit.at].0).collect()
        };
        assert_eq!(names("engine"), ["Analytical Engine", "Charles", "Long", "Paris"]);
        assert_eq!(names("charles engine")[0], "Charles");
        assert_eq!(names("person"), ["Charles", "Ada"]);
        assert_eq!(names("ENG"), ["Analytical Engine", "Charles", "Paris", "Long"]);
        assert!(names("nothing-like-this-at-all-xyz").contains(&"Long"));
        assert!(names("zzz").is_empty() && Query::of(" ?! ").is_none());
    }

    #[test]
    fn the_matching_observations_of_a_hit_come_first() {
        let entity = Entity {
            name: "a".into(),
            entity_type: "t".into(),
            observations: ["one", "two three", "three", "three two"].map(str::to_owned).to_vec(),
        };
        assert_eq!(Query::of("two three").unwrap().best(&entity, 3), ["two three", "three two", "three"]);
    }
}
