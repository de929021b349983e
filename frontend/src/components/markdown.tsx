/** Markdown as elements, without any HTML that stands in it. */
import { micromark } from "micromark";
import { gfmTable, gfmTableHtml } from "micromark-extension-gfm-table";
import { useMemo } from "preact/hooks";

export function Markdown({ text }: { text: string }) {
  const html = useMemo(() => onlyFromHere(micromark(text, { extensions: [gfmTable()], htmlExtensions: [gfmTableHtml()] })), [text]);
  return <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}

/**
 * The same without pictures from elsewhere, for which the browser would ask others: links lead to them. Of links to
 * files beside the text, which are not here, only the words stay. Headings stand below those of the page.
 */
function onlyFromHere(html: string): string {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const picture of body.querySelectorAll("img")) {
    if (picture.src.startsWith("data:")) continue;
    const link = document.createElement("a");
    link.href = picture.getAttribute("src") ?? "";
    link.textContent = picture.alt || "picture";
    picture.replaceWith(link);
  }
  for (const link of body.querySelectorAll("a")) {
    if (/^(https?|mailto):/i.test(link.getAttribute("href") ?? "")) link.rel = "noreferrer";
    else link.replaceWith(...link.childNodes);
  }
  for (const heading of body.querySelectorAll("h1, h2, h3, h4")) {
    const lower = document.createElement(`h${Math.min(6, Number(heading.tagName[1]) + 2)}`);
    lower.append(...heading.childNodes);
    heading.replaceWith(lower);
  }
  return body.innerHTML;
}
