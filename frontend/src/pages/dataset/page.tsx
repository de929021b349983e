/** A dataset: its parts are tabs, each with an address of its own. */
import type { FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";
import { checkSession, get, ofDataset, ping, session, urlOf } from "../../api";
import { Badge, Empty, Loading, Problem } from "../../components/basics";
import { Later } from "../../components/later";
import { NoSuchPage } from "../../components/no_such_page";
import { useKept, useLoad, useTitle } from "../../hooks";
import { datasetPath, href } from "../../router";
import type { Dataset } from "../../types";
import { AccessTab } from "./access";
import { Changes } from "./changes";
import { DataTab } from "./data";
import { GetTab } from "./get";
import { HistoryTab } from "./history";
import { Overview } from "./overview";
import { RunsTab } from "./runs";
import { SchemaTab } from "./schema";
import { SourceTab } from "./source";
import { VerifyTab } from "./verify";

export interface TabProperties {
  dataset: Dataset;
  /** Loads the dataset again, when something of it has changed besides its head. */
  reload?: () => void;
  /** What the address has behind the name of the tab. */
  part?: string;
}

type Tab = readonly [string, string, FunctionComponent<TabProperties>];

/** What archives of files have besides; it is loaded when somebody looks at one. */
const loadFiles = () => import("../files/tab").then((module) => module.FilesTab);
const filesTab: Tab = ["files", "Files", (properties) => <Later load={loadFiles} properties={properties} />];

const overviewTab: Tab = ["overview", "Overview", Overview];

const tabs: readonly Tab[] = [
  ["data", "Data", DataTab],
  ["schema", "Schema", SchemaTab],
  ["source", "Source", SourceTab],
  ["history", "History", HistoryTab],
  ["runs", "Runs", RunsTab],
  ["changes", "Changes", Changes],
  ["verify", "Verify", VerifyTab],
  ["get", "Get it", GetTab],
  ["access", "Access", AccessTab],
];

export function DatasetPage({ name, tab }: { name: string; tab: string }) {
  useTitle(name);
  const { value, error, reload } = useLoad(
    (signal) => get<Dataset>(ofDataset(name), { signal }),
    [name, session.value.name],
  );
  useNewHeads(name, value?.head, reload);
  const [favourites, setFavourites] = useKept<string[]>("favourites", []);
  if (error && !value) {
    if (error.status === 404 || error.status === 401) {
      return (
        <Empty title={`There is no dataset ${name} that you may read`}>
          <p>
            {session.value.name ? "It may be private, or renamed." : "It may be private."}{" "}
            {!session.value.name && <a href={href("signin", { then: location.pathname })}>Sign in</a>}
          </p>
        </Empty>
      );
    }
    return <Problem error={error} retry={reload} />;
  }
  if (!value) return <Loading />;
  const [shown = "", ...parts] = tab.split("/");
  const shownTabs = value.isArchive ? [overviewTab, filesTab, ...tabs] : [overviewTab, ...tabs];
  const Tab = parts.length && shown !== "files" ? undefined : shownTabs.find(([path]) => path === shown)?.[2];
  const isFavourite = favourites.includes(value.id);
  const toggle = () =>
    setFavourites(isFavourite ? favourites.filter((one) => one !== value.id) : [...favourites, value.id]);
  return (
    <article>
      <div class="bar">
        <h1>
          {value.name}{" "}
          <button type="button" class={`quiet star ${isFavourite ? "on" : ""}`} aria-pressed={isFavourite} aria-label="Favourite" onClick={toggle}>
            {isFavourite ? "★" : "☆"}
          </button>
        </h1>
        <Badge tone={value.kind === "Root" ? "info" : "plain"}>{value.kind}</Badge>
        <Badge>{value.visibility}</Badge>
      </div>
      {value.description && <p class="lead">{value.description}</p>}
      <nav class="tabs" aria-label="Parts of the dataset">
        {shownTabs.map(([path, label]) => (
          <a key={path} href={href(datasetPath(value.name, path === "overview" ? "" : path))} aria-current={path === shown ? "page" : undefined}>
            {path === "source" && value.kind === "Derivative" ? "Transformation" : label}
          </a>
        ))}
      </nav>
      {Tab ? <Tab dataset={value} reload={reload} part={parts.join("/")} key={shown === "files" ? shown : value.head} /> : <NoSuchPage near={[[datasetPath(value.name), value.name]]} />}
    </article>
  );
}

/** Loads the dataset again when its head has moved: the server tells. */
function useNewHeads(name: string, head: string | undefined, reload: () => void): void {
  useEffect(() => {
    if (!head) return;
    const events = new EventSource(urlOf(ofDataset(name, "events")));
    events.addEventListener("head", (event) => {
      const news = JSON.parse((event as MessageEvent<string>).data) as { head?: string };
      if (news.head && news.head !== head) reload();
    });
    events.addEventListener("end", () => events.close());
    events.addEventListener("error", () => void checkSession()); // the browser connects again by itself
    events.addEventListener("open", () => void ping());
    return () => events.close();
  }, [name, head, reload]);
}
