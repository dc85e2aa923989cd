// Rank search results by the menu: guides first, then other pages, and what is about the project itself last.
const LAST = ["Background", "Changelog"]; // captions and pages

function ranks() {
  const found = new Map();
  for (const list of document.querySelectorAll(".sidebar-tree > ul")) {
    const caption = list.previousElementSibling.textContent.trim();
    for (const link of list.querySelectorAll("a.reference")) {
      const last = LAST.includes(caption) || LAST.includes(link.textContent.trim());
      const page = link.getAttribute("href").replace(/\.html$/, "");
      found.set(page, { factor: last ? 0.3 : 1, place: found.size + (caption === "Guides" ? 0 : 100) });
    }
  }
  return found;
}

var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) => {
    Scorer.ranks ??= ranks();
    const { factor, place } = Scorer.ranks.get(page) ?? { factor: 1, place: 200 };
    const isPage = kind === "title" && !title.includes(" > ");
    return score * (isPage ? 1 : factor) - place / 1000;
  },
  objNameMatch: 12,
  objPartialMatch: 4,
  objPrio: {},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
