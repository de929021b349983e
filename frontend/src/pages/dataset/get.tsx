/** How to get a dataset, by each tool: what is copied from here runs where it is pasted. */
import { session, urlOf } from "../../api";
import { Loading, Problem, Snippet } from "../../components/basics";
import { datasetPath, href } from "../../router";
import type { Dataset, OwnAccess } from "../../types";
import { useOwnAccess } from "./access";
import type { TabProperties } from "./page";

type Table = OwnAccess["tables"][number];

export function GetTab({ dataset }: TabProperties) {
  const access = useOwnAccess(dataset);
  const server = urlOf("").replace(/\/$/, "");
  const { name } = dataset;
  const folder = name.split("/").pop() ?? name;
  const isDerived = dataset.kind === "Derivative";
  const isPublic = dataset.visibility === "public";
  const curl = `curl -s${isPublic ? "" : ' -H "Authorization: Bearer $ODF_TOKEN"'} -G '${server}/query' \\\n `;
  const current = `odf_current('${name}')`;
  return (
    <section>
      {!isPublic && (
        <>
          <p>
            This dataset is private: clients need an access token. The operator of the server creates one with <code>odf token new NAME</code>. All
            commands below read it from this variable:
          </p>
          <Token />
        </>
      )}
      <h2>A verifiable copy</h2>
      <Snippet
        label="odf: clone it into a new workspace, verify it, and keep it up to date"
        text={`odf clone ${server}/${name} ${folder}${isDerived ? " --recursive" : ""}\ncd ${folder}\nodf verify ${name}\nodf pull ${name} --follow`}
      />
      <p class="dim">
        {isDerived && "Verification recomputes the dataset from its inputs, so they are cloned, too. "}
        In an existing workspace: <code>{`odf pull ${server}/${name}`}</code>
      </p>
      <h2>The current state</h2>
      <Snippet label="Python: odfpy, to pandas" text={`import odfpy\n\nodf = odfpy.connect("${server}")\nframe = odf["${name}"].current().to_pandas()`} />
      <Snippet label="curl: the first rows" text={`${curl} --data-urlencode "query=select * from ${current} limit 10"`} />
      <Snippet
        label="curl: an answer with a proof; check it with the page “Check a proof”, or with odf verify-result answer.json"
        text={`${curl} -d include=Proof --data-urlencode "query=select count(*) as n from ${current}" -o answer.json`}
      />
      <h2>Delta Sharing</h2>
      {access.error && <Problem error={access.error} retry={access.reload} />}
      {!access.value && access.isLoading && <Loading />}
      {access.value && <Shared access={access.value} server={server} dataset={dataset} />}
    </section>
  );
}

function Token() {
  return <Snippet label="Shell: replace odf_... with your token" text="export ODF_TOKEN=odf_..." />;
}

/** The table that clients should read: the current state as it is now, where it is shared. */
function tableOf({ tables }: OwnAccess): Table | undefined {
  const readable = tables.filter(({ names }) => !names.some((one) => one.includes("."))); // clients split paths at dots
  return readable.find((one) => one.shown === "current" && !one.at) ?? readable[0];
}

function Shared({ access, server, dataset }: { access: OwnAccess; server: string; dataset: Dataset }) {
  const table = tableOf(access);
  if (!table) {
    return (
      <p>
        {access.name ? "It is in no share that you may read." : "Clients of Delta Sharing need a token, also for public datasets."}{" "}
        {session.value.isAdmin ? <a href={href("admin")}>Share it</a> : !session.value.name && <a href={href("signin", { then: href(datasetPath(dataset.name, "get")) })}>Sign in</a>}
      </p>
    );
  }
  const path = `profile.share#${table.names.join(".")}`;
  return (
    <>
      <p>
        You may read it as <code>{table.path}</code>: {table.shown === "changelog" ? "all changes" : "the current state"}
        {table.at && ` at ${table.at}`}. Where the publisher has sent you a profile file, take that one.
      </p>
      {dataset.visibility === "public" && <Token />}
      <Snippet
        label="Shell: a profile file with your token"
        text={`cat > profile.share <<END\n{"shareCredentialsVersion": 1, "endpoint": "${server}/delta-sharing/", "bearerToken": "$ODF_TOKEN"}\nEND`}
      />
      <Snippet label="Python: pandas, with pip install delta-sharing" text={`import delta_sharing\n\nframe = delta_sharing.load_as_pandas("${path}")`} />
      <Snippet
        label="Spark 4: started with pyspark --packages io.delta:delta-sharing-spark_2.13:4.0.1"
        text={`spark.read.format("deltaSharing").load("${path}").show()`}
      />
    </>
  );
}
