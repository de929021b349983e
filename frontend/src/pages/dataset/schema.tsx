/** The columns of a dataset. */
import { Badge, Empty, Loading, Problem } from "../../components/basics";
import { Table } from "../../components/table";
import { useLoad } from "../../hooks";
import { kindOf, schemaOf } from "../../rows";
import type { Field } from "../../types";
import type { TabProperties } from "./page";

const SYSTEM: Record<string, string> = {
  offset: "position of the row in the dataset, from 0",
  op: "operation type: append, retract, correct from, correct to",
  system_time: "when the dataset recorded the row",
  event_time: "when the event happened",
};

export function SchemaTab({ dataset }: TabProperties) {
  const { value, error, reload } = useLoad((signal) => schemaOf(dataset, signal), [dataset.head]);
  if (error) return <Problem error={error} retry={reload} />;
  if (!value) return <Loading />;
  if (!value.length) return <Empty title="No schema yet">It is set with the first rows.</Empty>;
  return (
    <Table label="Columns" columns={["Column", "Type", "Nulls", "About"]}>
      {value.map((field) => (
        <tr key={field.name}>
          <th scope="row">
            <code>{field.name}</code>
          </th>
          <td>{typeOf(field)}</td>
          <td>{field.type.kind === "Option" ? "may be null" : ""}</td>
          <td>{describe(field) ?? <Badge>{SYSTEM[field.name] ?? ""}</Badge>}</td>
        </tr>
      ))}
    </Table>
  );
}

function typeOf(field: Field): string {
  const type = field.type.kind === "Option" ? (field.type.inner as Record<string, unknown>) : field.type;
  const details = Object.entries(type)
    .filter(([name, value]) => name !== "kind" && typeof value !== "object")
    .map(([name, value]) => `${name} ${String(value)}`);
  return details.length ? `${kindOf(field)} (${details.join(", ")})` : kindOf(field);
}

function describe(field: Field) {
  const found = field.extra?.["opendatafabric.org/description"];
  if (typeof found === "string") return found;
  return SYSTEM[field.name] ?? "";
}
