/** How to get a file, by each tool: what is copied from here runs where it is pasted. */
import { urlOf } from "../../api";
import { Snippet } from "../../components/basics";
import type { Dataset } from "../../types";
import type { ArchivedFile } from "./types";
import { baseName } from "./words";

/** A word for a shell, whatever is in it. */
const quoted = (word: string): string => (/^[\w.,:/@%+-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** A name that is safe as that of a new file: without folders, and no option. */
const fileName = (path: string): string => `./${baseName(path).replace(/[\0-\x1f\x7f]/g, "_")}`;

export function Fetching({ dataset, file }: { dataset: Dataset; file: ArchivedFile }) {
  const server = urlOf("").replace(/\/$/, "");
  const archive = `${server}/${dataset.name}`;
  const address = `${archive}/v0/archive/files/${file.id}/data`;
  const isPublic = dataset.visibility === "public";
  const header = isPublic ? "" : ' -H "Authorization: Bearer $ODF_TOKEN"';
  return (
    <section>
      <h2>Fetch it</h2>
      {!isPublic && <Snippet label="Shell: replace odf_... with your token" text="export ODF_TOKEN=odf_..." />}
      <Snippet label="odf: fetch it, and check its hash" text={`odf archive fetch ${address} --filename-template '{name}'`} />
      <Snippet label="curl" text={`curl -f${header} -o ${quoted(fileName(file.path))} \\\n  '${archive}/file/${file.id}/content'`} />
      <Snippet label="Python: odfpy" text={`from odfpy.archive import open_archive\n\narchive = open_archive("${archive}")\ndata = archive.open(archive.get("${file.id}")).read()`} />
      {isPublic && <Snippet label="The client of datalake" text={`export DATALAKE_STORAGE_URL=s3://unused DATALAKE_HTTP_URL=${archive}\ndatalake fetch ${address}`} />}
    </section>
  );
}
