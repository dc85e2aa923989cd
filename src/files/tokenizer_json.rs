//! Reads the vocabulary and the merges of a tokenizer.json, Hugging Face's format. They are nearly all of it: the rest
//! is returned as JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::encode::{Listed, MAX_ID, MISSING, RankedTokens};
use crate::error::{Cancel, Error, Result, quoted, try_with_capacity};
use crate::table::chunk_map::ChunkMap;
use crate::table::hash::{HashMap, HashSet};

/// The content of a tokenizer.json.
#[derive(Default)]
pub struct TokenizerJson {
    /// Everything but the vocabulary and the merges.
    pub rest: String,
    /// The tokens of the vocabulary and of the merges.
    arena: Vec<u8>,
    vocab: Vec<(Name, u32)>,
    merges: Vec<[Name; 2]>,
}

/// A token in the arena: its bytes, or its text if it is not in byte-level spelling. Such a token is `raw`. No text is
/// encoded to it, since the text that reaches the model is spelled as bytes.
#[derive(Clone, Copy)]
struct Name {
    start: u32,
    end: u32,
    raw: bool,
}

/// The tokens of a tokenizer.json and their ids.
pub struct JsonTokens {
    pub ranked: RankedTokens,
    /// Chunks that are looked up before they are merged, and that merging would not find.
    pub stop_words: Vec<(Vec<u8>, u32)>,
    /// Tokens that no text is encoded to.
    pub decode_only: Vec<(Vec<u8>, u32)>,
    /// The ids in the vocabulary of the added tokens.
    pub added: Vec<Option<u32>>,
}

impl TokenizerJson {
    pub fn parse(content: &[u8]) -> Result<Self> {
        let mut file = Self::default();
        let mut json = serde_json::Deserializer::from_slice(content);
        File(&mut file)
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|error| Error::invalid(error.to_string()))?;
        Ok(file)
    }

    /// Returns the number of tokens in the vocabulary.
    pub fn n_vocab(&self) -> usize {
        self.vocab.len()
    }

    /// Returns the tokens. With `ignore_merges`, a chunk that is a token is not merged. `added` tokens are among them
    /// only if a merge makes them. Bytes that are `separate` do not merge with others.
    pub fn tokens(
        &self,
        added: &[String],
        ignore_merges: bool,
        separate: &[u8],
        cancel: &Cancel,
    ) -> Result<JsonTokens> {
        self.check_ids()?;
        let mut ids_of_added: [HashMap<Vec<u8>, Option<u32>>; 2] = Default::default(); // byte-level, raw
        let spelled = added.iter().map(|name| {
            let mut value = Vec::new();
            let raw = push_name(name, &mut value);
            (value, usize::from(raw))
        });
        let spelled: Vec<(Vec<u8>, usize)> = spelled.collect();
        for (value, raw) in &spelled {
            ids_of_added[*raw].insert(value.clone(), None);
        }
        let (mut tokens, mut raw) = (try_with_capacity(self.vocab.len())?, Vec::new());
        for &(name, id) in self.vocab.iter().filter(|(name, _)| name.start < name.end) {
            let value = self.bytes(name);
            match ids_of_added[usize::from(name.raw)].get_mut(value) {
                Some(added) => {
                    *added = Some(id);
                    if !name.raw {
                        tokens.push((value, id));
                    }
                }
                None if name.raw => raw.push((value.to_vec(), id)),
                None => tokens.push((value, id)),
            }
        }
        // A token is a byte, or 256 plus its index among those of several bytes. The map has that plus one.
        let mut numbers = ChunkMap::with_capacity(tokens.len())?;
        let mut count = 0;
        for (value, _) in &tokens {
            let number = numbers.entry(value)?;
            if *number > 0 {
                return Err(Error::invalid(format!("model.vocab: {} is listed twice", shown(value))));
            }
            *number = match **value {
                [byte] => u64::from(byte) + 1,
                _ => 257 + count,
            };
            count += u64::from(value.len() > 1);
        }
        let (listed, is_regular) = self.listed(&numbers, count as usize, separate, cancel)?;
        let size = self.merges.len();
        let (mut ranked, mut others) = RankedTokens::from_list(tokens.clone(), &listed, size, cancel)?;
        if is_regular && !ignore_merges && ranked.merges().len() < size {
            // Some of the merges never apply, but they are a valid model, such as one that was exported.
            ranked = self.all_merges(&tokens, &numbers)?;
            let ids: HashSet<u32> = ranked.ids.iter().copied().collect();
            others.retain(|token| !ids.contains(&token.1));
        }
        let added: Vec<Option<u32>> = spelled.iter().map(|(value, raw)| ids_of_added[*raw][value]).collect();
        let added_ids: HashSet<u32> = added.iter().copied().flatten().collect();
        others.retain(|token| !added_ids.contains(&token.1));
        let others: Vec<(Vec<u8>, u32)> = others.into_iter().map(|(value, id)| (value.to_vec(), id)).collect();
        let (mut stop_words, mut decode_only) =
            if ignore_merges { (others, raw) } else { (Vec::new(), [raw, others].concat()) };
        stop_words.sort_by_key(|token| token.1);
        decode_only.sort_by_key(|token| token.1);
        Ok(JsonTokens { ranked, stop_words, decode_only, added })
    }

    /// Returns the place in the list of each merge and the token it makes, and whether each token is made by at most
    /// one merge, after its parts.
    fn listed(&self, numbers: &ChunkMap, count: usize, separate: &[u8], cancel: &Cancel) -> Result<(Listed, bool)> {
        let mut listed = Listed::with_capacity_and_hasher(self.merges.len(), Default::default());
        let mut is_made = vec![false; count];
        let mut is_regular = true;
        let mut merged = Vec::new();
        for (place, &[first, last]) in self.merges.iter().enumerate() {
            if place.is_multiple_of(1 << 10) {
                cancel.check()?;
            }
            if first.raw || last.raw {
                continue; // it never applies
            }
            merged.clear();
            merged.extend_from_slice(self.bytes(first));
            merged.extend_from_slice(self.bytes(last));
            let separated = merged.iter().filter(|byte| separate.contains(byte)).count();
            if separated > 0 && separated < merged.len() {
                continue;
            }
            let number = |value: &[u8]| {
                let unknown = || Error::invalid(format!("merge {place}: {} is not in the vocabulary", shown(value)));
                let number = if value.is_empty() { None } else { numbers.get(value) };
                number.map(|number| number as u32 - 1).ok_or_else(unknown)
            };
            let pair = (number(self.bytes(first))?, number(self.bytes(last))?);
            let token = number(&merged)?;
            let index = token - 256;
            let are_made = [pair.0, pair.1].into_iter().all(|part| part < 256 || is_made[part as usize - 256]);
            is_regular &= are_made && !is_made[index as usize];
            is_made[index as usize] = true;
            listed.insert(pair, (place as u32, token));
        }
        is_regular &= listed.len() == self.merges.len();
        Ok((listed, is_regular))
    }

    fn all_merges(&self, tokens: &[(&[u8], u32)], numbers: &ChunkMap) -> Result<RankedTokens> {
        let mut byte_ids = [MISSING; 256];
        let mut ids = vec![0; 256];
        for &(value, id) in tokens {
            match *value {
                [byte] => byte_ids[usize::from(byte)] = id,
                _ => ids.push(id),
            }
        }
        let id = |value: &[u8]| {
            let number = numbers.get(value).expect("in the vocabulary") as usize - 1;
            byte_ids.get(number).copied().unwrap_or(ids[number])
        };
        let merges = self.merges.iter().map(|&[first, last]| {
            let (first, last) = (self.bytes(first), self.bytes(last));
            (id(first), id(last), id(&[first, last].concat()))
        });
        RankedTokens::from_merges(&byte_ids, merges)
    }

    fn check_ids(&self) -> Result<()> {
        let mut ids: Vec<(u32, Name)> = self.vocab.iter().map(|&(name, id)| (id, name)).collect();
        if !ids.is_sorted_by_key(|token| token.0) {
            ids.sort_by_key(|token| token.0);
        }
        let shown = |name| shown(self.bytes(name));
        if let Some(&[(id, name), (_, other)]) = ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (name, other) = (shown(name), shown(other));
            return Err(Error::invalid(format!("model.vocab: {name} and {other} have the same id {id}")));
        }
        match ids.last() {
            Some(&(id, name)) if id > MAX_ID => Err(Error::invalid(format!(
                "model.vocab: the id of {} must be at most {MAX_ID}, got {id}",
                shown(name)
            ))),
            _ => Ok(()),
        }
    }

    fn bytes(&self, name: Name) -> &[u8] {
        &self.arena[name.start as usize..name.end as usize]
    }

    fn push(&mut self, name: &str) -> Name {
        let start = self.arena.len() as u32;
        let raw = push_name(name, &mut self.arena);
        Name { start, end: self.arena.len() as u32, raw }
    }
}

/// Appends the bytes of a token, or its text if it is not in byte-level spelling. Returns whether it is not.
fn push_name(name: &str, bytes: &mut Vec<u8>) -> bool {
    let start = bytes.len();
    for c in name.chars() {
        match BYTES.get(c as usize) {
            Some(&byte) if byte < NO_BYTE => bytes.push(byte as u8),
            _ => {
                bytes.truncate(start);
                bytes.extend_from_slice(name.as_bytes());
                return true;
            }
        }
    }
    false
}

const NO_BYTE: u16 = 256;
/// The byte of each character in byte-level spelling: printable bytes of Latin-1 are spelled as themselves, the others
/// as U+0100, U+0101, …
const BYTES: [u16; 0x144] = {
    let mut bytes = [NO_BYTE; 0x144];
    let (mut byte, mut others) = (0, 0);
    while byte < 256 {
        let is_printable = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let character = if is_printable { byte } else { 0x100 + others };
        others += !is_printable as usize;
        bytes[character] = byte as u16;
        byte += 1;
    }
    bytes
};

fn shown(token: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(token))
}

/// The whole file.
struct File<'a>(&'a mut TokenizerJson);
/// Its part "model".
struct Model<'a>(&'a mut TokenizerJson);
struct Vocab<'a>(&'a mut TokenizerJson);
struct Merges<'a>(&'a mut TokenizerJson);
struct Merge<'a>(&'a mut TokenizerJson);
struct Token<'a>(&'a mut TokenizerJson);

macro_rules! seed {
    ($name:ident, $value:ty, $method:ident) => {
        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = $value;
            fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<$value, D::Error> {
                json.$method(self)
            }
        }
    };
}
seed!(File, (), deserialize_any);
seed!(Model, (), deserialize_any);
seed!(Vocab, (), deserialize_any);
seed!(Merges, (), deserialize_any);
seed!(Merge, (), deserialize_any);
seed!(Token, Name, deserialize_str);

/// Appends a field to an object in JSON.
fn push_field(rest: &mut String, key: &str, value: &str) {
    rest.push_str(if rest.ends_with('{') { "" } else { "," });
    rest.push_str(&serde_json::to_string(key).expect("a string"));
    rest.push(':');
    rest.push_str(value);
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with \"model\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        self.0.rest.push('{');
        while let Some(key) = map.next_key::<Cow<str>>()? {
            if key == "model" {
                push_field(&mut self.0.rest, &key, "");
                map.next_value_seed(Model(self.0))?;
            } else {
                push_field(&mut self.0.rest, &key, map.next_value::<&RawValue>()?.get());
            }
        }
        self.0.rest.push('}');
        Ok(())
    }
}

impl<'de> Visitor<'de> for Model<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object as \"model\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        self.0.rest.push('{');
        while let Some(key) = map.next_key::<Cow<str>>()? {
            match &*key {
                "vocab" => map.next_value_seed(Vocab(self.0))?,
                "merges" => map.next_value_seed(Merges(self.0))?,
                _ => push_field(&mut self.0.rest, &key, map.next_value::<&RawValue>()?.get()),
            }
        }
        self.0.rest.push('}');
        Ok(())
    }
}

impl<'de> Visitor<'de> for Vocab<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object of tokens and their ids as \"vocab\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Token(self.0))? {
            let id = map.next_value()?;
            self.0.vocab.push((name, id));
        }
        Ok(())
    }

    /// Other models than BPE have lists. They are refused because of their type.
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<(), A::Error> {
        while items.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl<'de> Visitor<'de> for Merges<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array as \"merges\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<(), A::Error> {
        while items.next_element_seed(Merge(self.0))?.is_some() {}
        Ok(())
    }
}

impl<'de> Visitor<'de> for Merge<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "two tokens as merge {}", self.0.merges.len())
    }

    fn visit_str<E: de::Error>(self, merge: &str) -> std::result::Result<(), E> {
        let parts = merge.split_once(' ').filter(|parts| !parts.1.contains(' '));
        let (first, last) = parts.ok_or_else(|| E::invalid_value(de::Unexpected::Str(merge), &self))?;
        let merge = [self.0.push(first), self.0.push(last)];
        self.0.merges.push(merge);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<(), A::Error> {
        let count = |count| de::Error::invalid_length(count, &Merge(&mut TokenizerJson::default()));
        let first = items.next_element_seed(Token(self.0))?.ok_or_else(|| count(0))?;
        let last = items.next_element_seed(Token(self.0))?.ok_or_else(|| count(1))?;
        if items.next_element::<de::IgnoredAny>()?.is_some() {
            return Err(de::Error::invalid_length(3, &self));
        }
        self.0.merges.push([first, last]);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Token<'_> {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a token")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> std::result::Result<Name, E> {
        if self.0.arena.len() + 2 * name.len() > u32::MAX as usize {
            return Err(E::custom("the tokens have more than 4 GiB in total"));
        }
        Ok(self.0.push(name))
    }
}
