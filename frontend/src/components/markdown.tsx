/** Markdown as elements, without any HTML that stands in it. */
import { micromark } from "micromark";
import { gfmTable, gfmTableHtml } from "micromark-extension-gfm-table";
import { useMemo } from "preact/hooks";

export function Markdown({ text }: { text: string }) {
  const html = useMemo(() => micromark(text, { extensions: [gfmTable()], htmlExtensions: [gfmTableHtml()] }), [text]);
  return <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}
