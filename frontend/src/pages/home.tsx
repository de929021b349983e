/** All datasets: looked for as one types, sorted, with favourites on top. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, session } from "../api";
import { Ago, Badge, Choice, Empty, Loading, Moment, Problem, SignedBy } from "../components/basics";
import { compact, count, counted, RECORDS, size } from "../format";
import { useKept, useLoad, useSettled, useTitle } from "../hooks";
import { address, datasetPath, href, setParameters } from "../router";
import type { Dataset } from "../types";

const PAGE = 100;
type Kind = "" | "Root" | "Derivative";

interface Page {
  datasets: Dataset[];
  total: number;
}

interface Wanted {
  search: string;
  kind: Kind;
  sort: string;
}

async function load({ search, kind, sort }: Wanted, more: [string, string][], signal?: AbortSignal): Promise<Page> {
  const query = new URLSearchParams([["search", search], ["sort", sort], ["limit", String(PAGE)], ...more]);
  if (kind) query.set("kind", kind);
  const answer = await call(`datasets?${query}`, { signal });
  return { datasets: await answer.json(), total: Number(answer.headers.get("X-Total-Count")) };
}

/** The favourites that fit, wherever they stand in the list. */
async function loadFavourites(wanted: Wanted, ids: string[], signal: AbortSignal): Promise<Dataset[]> {
  const pieces: string[][] = [];
  for (let from = 0; from < ids.length; from += PAGE) pieces.push(ids.slice(from, from + PAGE));
  const pages = await Promise.all(pieces.map((piece) => load(wanted, piece.map((id) => ["id", id]), signal)));
  return pages.flatMap((page) => page.datasets);
}

export function Home() {
  useTitle("Datasets");
  const parameters = address.value.searchParams;
  const search = parameters.get("search") ?? "";
  const kind = (parameters.get("kind") ?? "") as Kind;
  const sort = parameters.get("sort") ?? "name";
  const [typed, type] = useState(search);
  const settled = useSettled(typed, 150);
  useEffect(() => setParameters({ search: settled }), [settled]);
  const [favourites, setFavourites] = useKept<string[]>("favourites", []);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isWriting = (event.target as Element | null)?.closest("input, textarea, select, [contenteditable]");
      if (event.key === "/" && !isWriting && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        field.current?.focus();
      }
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);

  const who = session.value.name;
  const wanted = { search, kind, sort };
  const first = useLoad((signal) => load(wanted, [], signal), [search, kind, sort, who]);
  const preferred = useLoad((signal) => loadFavourites(wanted, favourites, signal), [search, kind, sort, who, favourites.join()]);
  const [more, setMore] = useState<Dataset[]>([]);
  const [isLoadingMore, setLoadingMore] = useState(false);
  const [moreError, setMoreError] = useState<ApiError>();
  useEffect(() => setMore([]), [first.value]);
  const total = first.value?.total ?? 0;
  const shown = [...(first.value?.datasets ?? []), ...more];
  const loadMore = async () => {
    setLoadingMore(true);
    setMoreError(undefined);
    try {
      const page = await load(wanted, [["offset", String(shown.length)]]);
      setMore([...more, ...page.datasets]);
    } catch (problem) {
      setMoreError(problem instanceof ApiError ? problem : new ApiError(0, String(problem)));
    }
    setLoadingMore(false);
  };
  const toggle = (id: string) =>
    setFavourites(favourites.includes(id) ? favourites.filter((one) => one !== id) : [...favourites, id]);
  const isFavourite = (dataset: Dataset) => favourites.includes(dataset.id);
  // Whatever has just been chosen is on this page, but not yet among those that were asked for.
  const known = new Map([...(preferred.value ?? []), ...shown].map((dataset) => [dataset.id, dataset]));
  const ordered = [...[...known.values()].filter(isFavourite), ...shown.filter((dataset) => !isFavourite(dataset))];

  return (
    <section>
      <div class="bar">
        <h1>Datasets</h1>
        <label class="search">
          <span class="hidden">Search datasets</span>
          <input
            ref={field}
            type="search"
            placeholder="Search by name, description or keyword  ( / )"
            value={typed}
            onInput={(event) => type(event.currentTarget.value)}
          />
        </label>
        <Choice
          label="Kind"
          value={kind}
          options={[
            ["", "All"],
            ["Root", "Root"],
            ["Derivative", "Derivative"],
          ]}
          choose={(value) => setParameters({ kind: value })}
        />
      </div>
      {first.error && <Problem error={first.error} retry={first.reload} />}
      {!first.value && first.isLoading && <Loading />}
      {first.value && total === 0 && <Nothing search={search} kind={kind} who={who} clear={() => type("")} />}
      {total > 0 && (
        <>
          <p class="dim" role="status">
            {counted(total, "dataset")}
            {search && ` for “${search}”`}
          </p>
          <div class="scroll" tabIndex={0} role="region" aria-label="Datasets">
            <table class="list datasets">
              <thead>
                <tr>
                  <th scope="col">
                    <span class="hidden">Favourite</span>
                  </th>
                  <Sorted by="name" now={sort}>
                    Name
                  </Sorted>
                  <th scope="col">Kind</th>
                  <Sorted by="numRecords" now={sort} isNumber title={RECORDS}>
                    Records
                  </Sorted>
                  <Sorted by="dataSize" now={sort} isNumber>
                    Size
                  </Sorted>
                  <Sorted by="watermark" now={sort}>
                    Watermark
                  </Sorted>
                  <Sorted by="updatedAt" now={sort}>
                    Updated
                  </Sorted>
                  <th scope="col">Verified</th>
                  <th scope="col">Signed by</th>
                </tr>
              </thead>
              <tbody>
                {ordered.map((dataset) => (
                  <Line key={dataset.id} dataset={dataset} isFavourite={isFavourite(dataset)} toggle={() => toggle(dataset.id)} />
                ))}
              </tbody>
            </table>
          </div>
          {shown.length < total && (
            <button type="button" onClick={loadMore} disabled={isLoadingMore}>
              Show more ({count(total - ordered.length)} left)
            </button>
          )}
          {moreError && <Problem error={moreError} retry={loadMore} />}
        </>
      )}
    </section>
  );
}

function Sorted({ by, now, isNumber = false, title, children }: { by: string; now: string; isNumber?: boolean; title?: string; children: string }) {
  const isUp = now === by;
  const isDown = now === `-${by}`;
  const first = by === "name" ? by : `-${by}`;
  const other = by === "name" ? `-${by}` : by;
  const next = now === first ? other : first;
  return (
    <th scope="col" class={isNumber ? "number" : ""} title={title} aria-sort={isUp ? "ascending" : isDown ? "descending" : undefined}>
      <button type="button" class="quiet" onClick={() => setParameters({ sort: next === "name" ? undefined : next })}>
        {children} <span aria-hidden="true">{isUp ? "↑" : isDown ? "↓" : ""}</span>
      </button>
    </th>
  );
}

function Line({ dataset, isFavourite, toggle }: { dataset: Dataset; isFavourite: boolean; toggle: () => void }) {
  return (
    <tr>
      <td>
        <button
          type="button"
          class={`quiet star ${isFavourite ? "on" : ""}`}
          aria-pressed={isFavourite}
          aria-label={`Favourite: ${dataset.name}`}
          onClick={toggle}
        >
          {isFavourite ? "★" : "☆"}
        </button>
      </td>
      <th scope="row">
        <a href={href(datasetPath(dataset.name))}>{dataset.name}</a> {dataset.visibility === "public" && <Badge>public</Badge>}
        {dataset.failure && (
          <Badge tone="bad" title={dataset.failure.message || dataset.failure.code}>
            last pull failed
          </Badge>
        )}
        {dataset.isLate && (
          <Badge tone="bad" title={`its schedule promises new rows at least every ${dataset.maxAge}`}>
            late
          </Badge>
        )}
        {dataset.description && <div class="dim line">{dataset.description}</div>}
      </th>
      <td>
        <Badge tone={dataset.kind === "Root" ? "info" : "plain"}>{dataset.kind}</Badge>
      </td>
      <td class="number" title={count(dataset.numRecords)}>
        {compact(dataset.numRecords)}
      </td>
      <td class="number">{size(dataset.dataSize)}</td>
      <td>
        <Moment time={dataset.watermark} />
      </td>
      <td>
        <Ago time={dataset.updatedAt} />
      </td>
      <td>
        <Verified dataset={dataset} />
      </td>
      <td>{dataset.signedBy.length ? <SignedBy names={dataset.signedBy} /> : <span class="dim">not signed</span>}</td>
    </tr>
  );
}

export function Verified({ dataset }: { dataset: Dataset }) {
  const { verification } = dataset;
  if (!verification) return <span class="dim">never</span>;
  if (!verification.ok) {
    return (
      <Badge tone="bad" title={`on ${verification.time}`}>
        failed
      </Badge>
    );
  }
  const what = verification.isReplayed ? "files, chain and replay" : "files and chain";
  return (
    <Badge tone={verification.isCurrent ? "good" : "warn"} title={`${what}, on ${verification.time}`}>
      {verification.isCurrent ? "verified" : "older blocks"}
    </Badge>
  );
}

function Nothing({ search, kind, who, clear }: { search: string; kind: Kind; who: string | null; clear: () => void }) {
  if (search || kind) {
    return (
      <Empty title={search ? `No match for “${search}”` : `There are no datasets of the kind ${kind}`}>
        <p>
          A dataset matches if its name, description or keywords contain all words.{" "}
          <a href={href("")} onClick={clear}>
            Show all datasets
          </a>
          {!who && (
            <>
              , or <a href={href("signin")}>sign in</a> to see private ones
            </>
          )}
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={who ? "No datasets yet" : "No public datasets"}>
      {who ? (
        <p>
          Create one with <code>odf new</code> and <code>odf add</code>, or pull one with <code>odf pull URL</code>.
        </p>
      ) : (
        <p>
          This server has no public datasets. <a href={href("signin")}>Sign in</a> to see others.
        </p>
      )}
    </Empty>
  );
}
