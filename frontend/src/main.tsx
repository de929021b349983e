/** The pages: a frame with the ways to all of them, and the one that the address names. */
import "uplot/dist/uPlot.min.css";
import "./style.css";
import type { ComponentChildren, FunctionComponent } from "preact";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { hasEnded, isOnline, loadSession, ping, session, signOut } from "./api";
import { Later } from "./components/later";
import { NoSuchPage } from "./components/no_such_page";
import { DatasetPage } from "./pages/dataset/page";
import { Home } from "./pages/home";
import { SignIn } from "./pages/signin";
import { address, href, navigate, pathOf } from "./router";
import { applyTheme, type Theme, theme } from "./theme";

/** Pages with parts of their own have these behind their name: `admin/grants`. */
const withParts = ["admin"];

const loaders: Record<string, () => Promise<FunctionComponent>> = {
  lineage: () => import("./pages/lineage").then((module) => module.LineagePage),
  query: () => import("./pages/query").then((module) => module.QueryPage),
  runs: () => import("./pages/automation/page").then((module) => module.RunsPage),
  provenance: () => import("./pages/provenance").then((module) => module.ProvenancePage),
  compare: () => import("./pages/compare").then((module) => module.ComparePage),
  admin: () => import("./pages/admin/page").then((module) => module.AdminPage),
  proof: () => import("./pages/proof").then((module) => module.ProofPage),
};

function Page() {
  const path = pathOf(address.value);
  if (path === "" || path === "datasets") return <Home />;
  if (path === "signin") return <SignIn />;
  if (path.startsWith("datasets/")) {
    const [name = "", tab = "overview"] = path.slice("datasets/".length).split("/-/");
    return <DatasetPage key={name} name={name.split("/").map(decodeURIComponent).join("/")} tab={tab} />;
  }
  const [front = ""] = path.split("/");
  const page = withParts.includes(front) ? front : path;
  const load = loaders[page];
  if (load) return <Later key={page} load={load} properties={{}} />;
  return <NoSuchPage />;
}

function NavLink({ path, children }: { path: string; children: ComponentChildren }) {
  const here = pathOf(address.value);
  const isHere = path === "" ? here === "" || here.startsWith("datasets") : here.startsWith(path);
  return (
    <a href={href(path)} aria-current={isHere ? "page" : undefined}>
      {children}
    </a>
  );
}

function Frame() {
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={href("")} aria-label="Open Data Fabric, all datasets">
          <span aria-hidden="true">◆</span> ODF
        </a>
        <nav aria-label="Pages">
          <NavLink path="">Datasets</NavLink>
          <NavLink path="lineage">Lineage</NavLink>
          <NavLink path="runs">Runs</NavLink>
          <NavLink path="query">Query</NavLink>
          <NavLink path="proof">Check a proof</NavLink>
          {session.value.isAdmin && <NavLink path="admin">Administration</NavLink>}
        </nav>
        <div class="person">
          <ThemeButton />
          <Person />
        </div>
      </header>
      {!isOnline.value && <Offline />}
      {hasEnded.value && pathOf(address.value) !== "signin" && (
        <p class="banner" role="alert">
          Your session has expired. The page may be out of date. <a href={signInLink()}>Sign in again</a>
        </p>
      )}
      <main id="content" tabIndex={-1}>
        <Page />
      </main>
    </>
  );
}

function ThemeButton() {
  const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
  const signs: Record<Theme, string> = { auto: "◐", light: "☀", dark: "☾" };
  const now = theme.value;
  return (
    <button type="button" class="quiet" title={`Colours: ${now}`} aria-label={`Colours: ${now}; change`} onClick={() => applyTheme(next[now])}>
      {signs[now]}
    </button>
  );
}

function Person() {
  const { name, scope, isAdmin } = session.value;
  if (!name) return <a href={signInLink()}>Sign in</a>;
  const leave = async () => {
    await signOut();
    navigate(href("signin"));
  };
  return (
    <>
      <span title={isAdmin ? "can do everything" : `scope ${scope}`}>{name}</span>
      <button type="button" class="quiet" onClick={leave}>
        Sign out
      </button>
    </>
  );
}

function Offline() {
  useEffect(() => {
    const timer = setInterval(ping, 2000);
    return () => clearInterval(timer);
  }, []);
  return (
    <p class="banner" role="alert">
      The server does not answer. This page retries automatically; your input is kept.
    </p>
  );
}

function signInLink(): string {
  const here = address.value.pathname + address.value.search;
  return href("signin", pathOf(address.value) === "signin" ? {} : { then: here });
}

applyTheme(theme.value);
const place = document.getElementById("app");
if (place) {
  loadSession()
    .catch(() => undefined) // the banner says that the server does not answer
    .finally(() => {
      place.replaceChildren();
      render(<Frame />, place);
    });
}
