// The design system: everything a page is built from.
export { Badge, type Tone } from "./Badge";
export { Button } from "./Button";
export { Card } from "./Card";
export { Chart, type Series } from "./Chart";
export { CodeBlock, CopyButton, JsonView, ModelText } from "./Code";
export { Dialog, DialogForm } from "./Dialog";
export { Facts } from "./Facts";
export { EmptyState, Failure, Loading, Note, Progress } from "./Feedback";
export { Columns, Field, Input, SearchBox, Select } from "./Form";
export { IntervalBar } from "./IntervalBar";
export { Page, type Crumb } from "./Page";
export { Stat, Stats } from "./Stat";
export { Table, type Column } from "./Table";
export { Segmented, Tabs } from "./Tabs";
export { Toasts, useToast } from "./Toast";
