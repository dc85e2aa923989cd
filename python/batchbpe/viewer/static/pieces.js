/* Cut a text into pieces for display: tokens, joined where they share a character or a grapheme cluster.
   Offsets are in UTF-16 code units. If a token ends inside a character, its end is the bitwise complement of the end of
   that character. */

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const BLOCK = 400; // a block ends at the first line break after this many characters …
const MAX_BLOCK = 3000; // … or in the middle of a line that is very long
const MAX_BLOCKS = 800;

export function offset(end) {
  return end < 0 ? ~end : end;
}

/* The index of the first token that ends after an offset. */
export function tokenAfter(model, place) {
  let low = 0;
  let high = model.ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (offset(model.ends[middle]) > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

function isBoundary(model, place) {
  const token = tokenAfter(model, place);
  if (model.starts) return token === model.ends.length || offset(model.starts[token]) >= place;
  return model.ends[token - 1] === place;
}

/* Return the offsets at which blocks of text end. All models have a boundary there. */
export function cutBlocks(text, models) {
  const ends = [];
  const size = Math.max(BLOCK, text.length / MAX_BLOCKS);
  let line = 0; // the end of a line
  for (let start = 0; start < text.length; start = ends.at(-1)) {
    while (line < start + size || (line < text.length && !models.every((model) => isBoundary(model, line)))) {
      line = text.indexOf("\n", Math.max(line, start + size)) + 1 || text.length;
      if (line === text.length) break;
    }
    const isLong = line - start > size + MAX_BLOCK;
    ends.push((isLong && cutLine(text, models, start, Math.floor(start + size), line)) || line);
  }
  return ends;
}

/* Find an offset after `from` where a line that is too long can be cut: between grapheme clusters. */
function cutLine(text, models, start, from, line) {
  for (const until of [Math.min(from + MAX_BLOCK, line), line]) { // segmenting a whole long line takes longer
    for (const { index } of segmenter.segment(text.slice(start, until))) {
      const place = start + index;
      if (place >= from && models.every((model) => isBoundary(model, place))) return place;
    }
  }
  return null;
}

/* Return the pieces between two offsets: {start, end, first, last}, with the tokens from first up to last. */
export function cutPieces(text, model, from, to) {
  const part = text.slice(from, to);
  const breaks = /^[\n -~]*$/.test(part) ? null : new Set(graphemes(part).map((place) => from + place)).add(to);
  const pieces = [];
  let start = from;
  let first = tokenAfter(model, from);
  for (let token = first; token < model.ends.length && start < to; token++) {
    const begin = model.starts && token === first ? offset(model.starts[token]) : start;
    if (begin >= to) break;
    if (begin > start) pieces.push({ start, end: begin, first, last: first }); // text that the pattern drops
    start = Math.max(start, begin);
    const end = model.ends[token];
    if (end < 0 || (breaks && !breaks.has(end))) continue;
    pieces.push({ start, end, first, last: token + 1 });
    start = end;
    first = token + 1;
  }
  if (start < to) pieces.push({ start, end: to, first, last: tokenAfter(model, to - 1) });
  return pieces;
}

function graphemes(text) {
  return Array.from(segmenter.segment(text), ({ index }) => index);
}

const SIGNS = { " ": "·\u200b", "\u00a0": "⍽", "\t": "→\t", "\n": "↵\n", "\r": "\\r", "\u3000": "□" };
const SPACES = /[ \u00a0\t\n\r\u3000]/g;
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b\u2028\u2029\u2060\ufeff]/g;
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // always shown, since they reorder what follows

function escaped(character) {
  const code = character.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/* Whether the line at an offset is displayed from right to left: its first letter decides. */
export function isRightToLeft(text, place) {
  const end = text.indexOf("\n", place);
  const line = text.slice(text.lastIndexOf("\n", place - 1) + 1, end < 0 ? text.length : end);
  return RIGHT_TO_LEFT.test(/\p{L}/u.exec(line)?.[0] ?? "");
}

/* Return a text in the form to display. */
export function display(text, showSpaces) {
  const shown = text.replace(DIRECTIONS, escaped);
  if (!showSpaces) return shown;
  return shown.replace(CONTROLS, escaped).replace(SPACES, (character) => SIGNS[character]);
}

/* Return the bytes of a token in hex, such as "20 61". */
export function hexBytes(token) {
  return token.hex.toUpperCase().replace(/..(?=.)/g, "$& ") + rest(token);
}

/* A sign after a token that the server has shortened. */
function rest(token) {
  return token.hex.length < 2 * token.bytes ? "…" : "";
}

/* Return a token on one line: text with visible spaces, or bytes in hex if it is not valid UTF-8. */
export function displayToken(token) {
  if (token.text === null) return hexBytes(token);
  return display(token.text, true).replace(/[\n\t]/g, "") + rest(token);
}
