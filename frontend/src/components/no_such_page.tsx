/** The page for an unknown address, with links. */
import { href } from "../router";

/** `near` are similar pages, with their labels. */
export function NoSuchPage({ near = [] }: { near?: readonly (readonly [string, string])[] }) {
  const Heading = near.length ? "h2" : "h1";
  return (
    <div class="empty">
      <Heading>Page not found</Heading>
      {[...near, ["", "All datasets"] as const].map(([path, label]) => (
        <p key={path}>
          <a href={href(path)}>{label}</a>
        </p>
      ))}
    </div>
  );
}
