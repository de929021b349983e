/** An address that leads nowhere, and where to go from there. */
import { href } from "../router";

/** `near` are pages that somebody may have meant, with their labels. */
export function NoSuchPage({ near = [] }: { near?: readonly (readonly [string, string])[] }) {
  const Heading = near.length ? "h2" : "h1";
  return (
    <div class="empty">
      <Heading>There is no such page</Heading>
      {[...near, ["", "All datasets"] as const].map(([path, label]) => (
        <p key={path}>
          <a href={href(path)}>{label}</a>
        </p>
      ))}
    </div>
  );
}
