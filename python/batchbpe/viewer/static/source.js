/* The source of the data: the server, or the page itself if it was written with --static. */

const inlined = document.getElementById("data");
const page = inlined && JSON.parse(inlined.textContent);

export const isStatic = page !== null;

async function ask(path, parameters = {}, options = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  const response = await fetch(`/api/${path}${query && `?${query}`}`, options).catch(() => {
    throw new Error("The server does not respond. Is batchbpe view still running?");
  });
  if (response.ok) return response.json();
  const { error } = await response.json().catch(() => ({}));
  throw new Error(error ?? `The server failed (${response.status}). The terminal shows why.`);
}

export async function getWorkspace() {
  return isStatic ? page.workspace : ask("workspace");
}

/* Encode with all models, or only with `model`; `merges` limits it to its first merges. */
export async function encode(text, { model = null, merges = null } = {}) {
  if (isStatic) return page.encoded;
  const headers = { "content-type": "application/octet-stream" };
  return ask("encode", { model, merges }, { method: "POST", headers, body: text });
}

const known = new Map();

/* Describe a token. `corpus` is the key of a text that was encoded, or "data". */
export function getToken(model, id, corpus) {
  if (isStatic) {
    const parts = page.tokens[model] ?? {};
    if (!Object.hasOwn(parts, id)) return Promise.reject(new Error(`The text does not contain the token ${model}-${id}.`));
    return Promise.resolve({ token: parts[id], parts, built: [], built_total: 0 });
  }
  const key = `${model} ${id} ${corpus}`;
  if (!known.has(key)) {
    if (known.size > 5000) known.clear();
    // The server keeps only the counts of the last few texts.
    const answer = ask("token", { model, id, corpus }).catch((error) => {
      if (!corpus) throw error;
      return ask("token", { model, id });
    });
    answer.catch(() => known.delete(key));
    known.set(key, answer);
  }
  return known.get(key);
}

export function getVocabulary(query) {
  return ask("vocabulary", query);
}

export function getDiff(query) {
  return ask("diff", query);
}

export function getChunks(query) {
  return ask("chunks", query);
}
