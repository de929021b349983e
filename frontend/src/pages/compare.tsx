/** The rows in which a dataset differs between two moments, on a page of its own. */
import { get, ofDataset, session } from "../api";
import { Empty, Loading, Problem } from "../components/basics";
import { useLoad, useTitle } from "../hooks";
import { address, datasetPath, href, navigate } from "../router";
import type { Dataset } from "../types";
import { Changes } from "./dataset/changes";

export function ComparePage() {
  const name = address.value.searchParams.get("dataset") ?? "";
  useTitle(name ? `Changes of ${name}` : "Compare");
  const ask = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    navigate(href("compare", { dataset: String(fields.get("dataset")).trim() }));
  };
  return (
    <article>
      <h1>
        Changes{name && " of "}
        {name && <a href={href(datasetPath(name))}>{name}</a>}
      </h1>
      <form class="bar ask" onSubmit={ask} key={name}>
        <label>
          Dataset <input name="dataset" defaultValue={name} spellcheck={false} />
        </label>
        <button type="submit">Show</button>
      </form>
      {name ? <Found key={name} name={name} /> : <Empty title="Which dataset?" />}
    </article>
  );
}

function Found({ name }: { name: string }) {
  const { value, error, reload } = useLoad((signal) => get<Dataset>(ofDataset(name), { signal }), [name, session.value.name]);
  if (error) return <Problem error={error} retry={reload} />;
  return value ? <Changes dataset={value} /> : <Loading />;
}
