/** How to get a dataset, by each tool, to copy. */
import { urlOf } from "../../api";
import { Snippet } from "../../components/basics";
import type { TabProperties } from "./page";

export function Access({ dataset }: TabProperties) {
  const server = urlOf("").replace(/\/$/, "");
  const { name } = dataset;
  const token = dataset.visibility === "public" ? "" : " -H 'Authorization: Bearer TOKEN'";
  return (
    <section>
      {token && (
        <p>
          This dataset is private: clients need an access token. Whoever runs the server makes one with{" "}
          <code>odf token new NAME</code>.
        </p>
      )}
      <h2>A copy that you can verify</h2>
      <Snippet
        label="odf: pull it, verify it, and stay up to date"
        text={`${token ? `odf login ${server}\n` : ""}odf pull ${server}/${name}\nodf verify ${name}\nodf pull ${name} --follow`}
      />
      <h2>Rows</h2>
      <Snippet
        label="Python: odfpy, to pandas"
        text={`import odfpy\n\nodf = odfpy.connect("${server}"${token ? ', token="TOKEN"' : ""})\nframe = odf.dataset("${name}").current().to_pandas()`}
      />
      <Snippet
        label="Python: pandas by Delta Sharing, with the profile that the publisher has sent"
        text={`import delta_sharing\n\nframe = delta_sharing.load_as_pandas("profile.share#SHARE.SCHEMA.TABLE")`}
      />
      <Snippet
        label="Spark by Delta Sharing"
        text={`spark.read.format("deltaSharing").load("profile.share#SHARE.SCHEMA.TABLE")`}
      />
      <Snippet
        label="curl: the last rows"
        text={`curl -s${token} '${server}/${name}/tail?limit=10'`}
      />
      <Snippet
        label="curl: a query, with a proof"
        text={`curl -s${token} ${server}/query -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify({ query: `select count(*) as n from "${name}"`, include: ["Proof"] })}'`}
      />
    </section>
  );
}
