/** Before the first answer: queries to run with a click, and datasets to name in one. */
import { call, session } from "../api";
import { count } from "../format";
import { useLoad } from "../hooks";
import { href } from "../router";
import type { Dataset } from "../types";

const LISTED = 12;
const OWN = "odf."; // names of what the workspace writes about itself

interface Properties {
  run: (query: string) => void;
  /** Writes the name of a dataset. */
  name: (dataset: string) => void;
}

async function load(signal: AbortSignal): Promise<{ datasets: Dataset[]; total: number }> {
  const answer = await call(`datasets?limit=${LISTED}`, { signal });
  return { datasets: await answer.json(), total: Number(answer.headers.get("X-Total-Count")) };
}

/** The one that first queries are about: it has rows, and somebody has made it. */
function shownBy(datasets: Dataset[]): Dataset | undefined {
  const filled = datasets.filter((dataset) => dataset.numRecords > 0);
  return filled.find((dataset) => !dataset.name.startsWith(OWN)) ?? filled[0];
}

function queriesOf({ name }: Dataset): [string, string][] {
  return [
    [`The rows of ${name} as they are now`, `select * from odf_current('${name}') limit 100`],
    ["How many rows there are", `select count(*) as n from odf_current('${name}')`],
  ];
}

export function FirstQueries({ run, name }: Properties) {
  const { value } = useLoad(load, [session.value.name]);
  if (!value?.datasets.length) return null;
  const { datasets, total } = value;
  const example = shownBy(datasets);
  return (
    <section>
      {example && (
        <>
          <h2>Examples</h2>
          <p class="dim">Click a query to run it.</p>
          <ul class="plain">
            {queriesOf(example).map(([what, query]) => (
              <li key={query}>
                {what}:{" "}
                <button type="button" class="quiet" onClick={() => run(query)}>
                  <code>{query}</code>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <h2>Datasets</h2>
      <p class="dim">Click a name to insert it into the query.</p>
      <ul class="plain names">
        {datasets.map((dataset) => (
          <li key={dataset.id}>
            <button type="button" class="quiet" title={dataset.description ?? undefined} onClick={() => name(dataset.name)}>
              {dataset.name}
            </button>
          </li>
        ))}
      </ul>
      {total > datasets.length && <a href={href("")}>All {count(total)} datasets</a>}
    </section>
  );
}
