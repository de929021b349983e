/** One file of an archive: what is said of it and by whom, what is in it, and how to tell that it is unchanged. */
import { get, ofDataset, urlOf } from "../../api";
import { Badge, Empty, Fact, Facts, Hash, Loading, Moment, Problem } from "../../components/basics";
import { count, size } from "../../format";
import { useLoad, useTitle } from "../../hooks";
import { address } from "../../router";
import type { Dataset } from "../../types";
import { Fetching } from "./fetching";
import { History } from "./history";
import { PreviewOf } from "./preview";
import { Proof } from "./proof";
import { addressOf, searchOf } from "./search";
import type { ArchivedFile, Details } from "./types";
import { baseName, clock, StatusBadge } from "./words";

export function FilePage({ dataset, id }: { dataset: Dataset; id: string }) {
  const path = ofDataset(dataset.name, `file/${encodeURIComponent(id)}`);
  const { value, error, reload } = useLoad((signal) => get<Details>(path, { signal }), [path, dataset.head]);
  const name = value ? baseName(value.file.path) : id;
  useTitle(`${name} · ${dataset.name}`);
  if (error && !value) {
    if (error.status !== 404) return <Problem error={error} retry={reload} />;
    return (
      <Empty title={`There is no file ${id.slice(0, 128)}`}>
        <p>
          <a href={allFiles(dataset)}>All files of {dataset.name}</a>
        </p>
      </Empty>
    );
  }
  if (!value) return <Loading />;
  const { file, place, history } = value;
  const isGiven = place === "here" && file.status !== "withdrawn";
  const day = file.start.slice(0, 10);
  return (
    <div class="file">
      <p class="bar">
        <a href={allFiles(dataset)}>All files</a>
        <a href={addressOf(dataset.name, searchOf(new URL(allFiles(dataset), location.href)), { what: file.what, where: file.where, from: day, to: day })}>
          All {file.what} from {file.where} of that day
        </a>
      </p>
      <div class="bar">
        <h2 class="file-name">
          <bdi>{name}</bdi>
        </h2>
        <StatusBadge status={file.status} />
        {place !== "here" && <Badge tone={place === "removed" ? "bad" : "warn"}>{place === "removed" ? "content removed" : "content is in other copies"}</Badge>}
      </div>
      <Standing details={value} dataset={dataset} />
      <Record file={file} />
      {isGiven && (
        <>
          <p class="bar">
            <a class="button" href={urlOf(`${path}/content`)} download={name}>
              Download
            </a>
            <span class="dim">{size(file.size)}, as it was archived</span>
          </p>
          <PreviewOf path={path} file={file} />
        </>
      )}
      <Proof dataset={dataset} details={value} path={path} />
      <History dataset={dataset} history={history} />
      {isGiven && <Fetching dataset={dataset} file={file} />}
    </div>
  );
}

const allFiles = (dataset: Dataset): string => addressOf(dataset.name, searchOf(address.value), { what: "", where: "", work: "", from: "", to: "", always: false });

/** What has become of a file that is not as it was, and what to do about it. */
function Standing({ details: { file, place, history }, dataset }: { details: Details; dataset: Dataset }) {
  if (file.status === "kept" && place === "here") return null;
  // The record may have been corrected since, by somebody else and for another reason.
  const release = history.find(({ status }, at) => status === file.status && history[at - 1]?.status !== status) ?? file;
  return (
    <div class="note">
      {file.status !== "kept" && (
        <p>
          <strong>
            {file.status === "withdrawn" ? "Withdrawn" : "Expired"} <Moment time={file.released} /> by <bdi>{release.who}</bdi>
          </strong>
          : <bdi>{release.why}</bdi>.{" "}
          {file.status === "withdrawn" ? "Searches do not list it, and its content is no longer served." : "Its retention has ended."}
        </p>
      )}
      {place === "removed" && <p>Its content was removed. The record still proves its hash and its size.</p>}
      {place === "elsewhere" && (
        <p>
          This copy of the archive does not have its content. Fetch it with <code>odf pull {dataset.name} --files all</code>.
        </p>
      )}
    </div>
  );
}

function Record({ file }: { file: ArchivedFile }) {
  return (
    <>
      <p class="lead">
        <strong>{file.what}</strong> from <strong>{file.where}</strong>, {file.end ? `${clock(file.start)} to ${clock(file.end, file.start)} UTC` : `at ${clock(file.start)} UTC`}
        {file.workId && (
          <>
            , of the job <strong>{file.workId}</strong>
          </>
        )}
      </p>
      <Facts>
        <Fact name="Original path">
          <code>
            <bdi>{file.path}</bdi>
          </code>
        </Fact>
        <Fact name="Size" title={`${count(file.size)} bytes`}>
          {size(file.size)}
        </Fact>
        <Fact name="Archived">
          <Moment time={file.createTime} />
        </Fact>
        <Fact name="Id">
          <Hash text={file.id} />
        </Fact>
      </Facts>
    </>
  );
}

