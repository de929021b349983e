/** Files of an archive: found by what they are, where they come from and when they happened. */
import { useEffect, useRef } from "preact/hooks";
import { ApiError, get, ofDataset } from "../../api";
import { Badge, Empty, Loading, Problem } from "../../components/basics";
import { Table } from "../../components/table";
import { count, counted, size } from "../../format";
import { type Loaded, useLoad } from "../../hooks";
import { address } from "../../router";
import type { TabProperties } from "../dataset/page";
import { FilePage } from "./file";
import { Filters } from "./filters";
import { NamesTable } from "./names";
import { addressOf, daysShown, fileAddress, parametersOf, type Search, searchOf } from "./search";
import type { ArchivedFile, FileDay } from "./types";
import { When } from "./when";
import { baseName, clock, StatusBadge } from "./words";

export function FilesTab({ dataset, part = "" }: TabProperties) {
  if (part) return <FilePage key={part} dataset={dataset} id={decodeURIComponent(part)} />;
  return <Browse dataset={dataset} />;
}

function Browse({ dataset }: TabProperties) {
  const search = searchOf(address.value);
  const names = new URLSearchParams();
  if (search.what) names.set("what", search.what);
  if (search.where) names.set("where", search.where);
  const days = useLoad((signal) => get<FileDay[]>(ofDataset(dataset.name, `files/days?${names}`), { signal }), [dataset.head, String(names)]);
  const isEmpty = days.value?.length === 0 && !search.what && !search.where;
  if (isEmpty) {
    return (
      <Empty title="No files yet">
        <p>
          Add some with <code>odf archive push FILE --what ... --where ...</code>
        </p>
      </Empty>
    );
  }
  return (
    <section>
      <Filters dataset={dataset} search={search} />
      {days.error && <Problem error={days.error} retry={days.reload} />}
      <div class="finding">
        <NamesTable dataset={dataset} search={search} />
        {days.value ? <When dataset={dataset} search={search} days={days.value} /> : <Loading />}
      </div>
      {days.value && <Found dataset={dataset} search={search} days={days.value} />}
    </section>
  );
}

interface Answer {
  files: ArchivedFile[];
  next: string | null;
  /** What was asked. */
  parameters: string;
}

type Days = ReturnType<typeof daysShown>;

const COLUMNS = ["File", "Start (UTC)", "End", "What", "Where", "Job", { name: "Size", isNumber: true }];

function Found({ dataset, search, days }: TabProperties & { search: Search; days: FileDay[] }) {
  const shown = daysShown(search, days);
  const parameters = parametersOf(search, shown);
  const ask = async (signal: AbortSignal) => ({ ...(await get<Answer>(ofDataset(dataset.name, `files?${parameters}`), { signal })), parameters });
  const list = useLoad(ask, [dataset.head, parameters]);
  const title = useRef<HTMLHeadingElement>(null);
  const page = useRef(search.cursor);
  useEffect(() => {
    if (page.current === search.cursor) return;
    page.current = search.cursor;
    title.current?.focus(); // whoever turns the page reads on at its top
  }, [search.cursor]);
  return (
    <section aria-busy={list.value?.parameters !== parameters && !list.error}>
      <h2 ref={title} tabIndex={-1}>
        {titleOf(search, shown)}
        {!search.work && <span class="aside dim">{counted(numberOn(shown, days), "file")}</span>}
      </h2>
      <Pages dataset={dataset} search={search} shown={shown} list={list} />
    </section>
  );
}

/** What the list is of, in words. */
function titleOf(search: Search, shown: Days): string {
  const of = [search.what && ` of ${search.what}`, search.where && ` from ${search.where}`].filter(Boolean).join("");
  if (search.work) return `Files${of} of the job ${search.work}`;
  if (!shown.from && !shown.to) return `Files${of}, of all times`;
  const days = shown.from === shown.to ? shown.from : [shown.from && `from ${shown.from}`, shown.to && `to ${shown.to}`].filter(Boolean).join(" ");
  return `${search.from || search.to ? "Files" : "The last files"}${of}, ${days.replace(/^from (\S+) to/, "$1 to")}`;
}

/** How many files begin on the days that are shown; those that have begun before and go on then are listed, too. */
function numberOn(shown: Days, days: FileDay[]): number {
  return days.reduce((sum, { day, numFiles }) => (day >= shown.from && (!shown.to || day <= shown.to) ? sum + numFiles : sum), 0);
}

function Pages(props: TabProperties & { search: Search; shown: Days; list: Loaded<Answer> }) {
  const { dataset, search, shown, list } = props;
  if (list.error) return <Trouble {...props} error={list.error} />;
  if (!list.value) return <Loading />;
  if (!list.value.files.length) return <Empty title="No matching files">Try other days, or fewer filters.</Empty>;
  const { files, next } = list.value;
  return (
    <>
      <Table label="Files" columns={COLUMNS} style="files">
        {files.map((file) => (
          <tr key={file.id}>
            <th scope="row">
              <a href={fileAddress(dataset.name, file.id)} title={file.path}>
                <bdi>{baseName(file.path)}</bdi>
              </a>{" "}
              <StatusBadge status={file.status} />
            </th>
            <td class="short">{clock(file.start)}</td>
            <td class="short">{file.end ? clock(file.end, file.start) : ""}</td>
            <td>{file.what}</td>
            <td>{file.where}</td>
            <td>{file.workId}</td>
            <td class="number short" title={`${count(file.size)} bytes`}>
              {size(file.size)}
            </td>
          </tr>
        ))}
      </Table>
      <nav class="bar" aria-label="Pages of the list">
        {search.cursor && <a href={addressOf(dataset.name, search, shown)}>First page</a>}
        {next && (
          <a class="button" href={addressOf(dataset.name, search, { ...shown, cursor: next })}>
            Next page
          </a>
        )}
        <span class="dim" role="status">
          {search.cursor || next ? `${counted(files.length, "file")} on this page${next ? "" : ", the last one"}` : "All files are shown."}
        </span>
      </nav>
    </>
  );
}

function Trouble({ dataset, search, shown, list, error }: TabProperties & { search: Search; shown: Days; list: Loaded<Answer>; error: ApiError }) {
  return (
    <>
      <Problem error={error} retry={list.reload} />
      {search.cursor && (
        <p>
          <Badge tone="warn">the link refers to a page</Badge> <a href={addressOf(dataset.name, search, shown)}>Go to the first page</a>
        </p>
      )}
    </>
  );
}
